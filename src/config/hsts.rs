//! For how long browsers are told to come by HTTPS alone (RFC 6797).

use std::str::FromStr;
use std::time::Duration;

use crate::spelled;

/// What an operator says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hsts {
    Off,
    /// Zero takes back what was told before.
    For(Duration),
}

/// A text that says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time such as 180d is wanted, or off, or 0 to take back what browsers were told before")]
pub struct NotHsts;

impl Hsts {
    /// What holds where nobody says it. A browser keeps it for every port of a name, which an operator has to have
    /// decided: by sending the plain port of it here.
    #[must_use]
    pub fn usual(redirects: bool) -> Self {
        if redirects { Self::For(HALF_YEAR) } else { Self::Off }
    }

    /// The time, if anything is told.
    #[must_use]
    pub fn told(self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::For(time) => Some(time),
        }
    }
}

impl FromStr for Hsts {
    type Err = NotHsts;

    fn from_str(text: &str) -> Result<Self, NotHsts> {
        match text {
            "off" => Ok(Self::Off),
            "0" => Ok(Self::For(Duration::ZERO)),
            _ => spelled::duration(text).map(Self::For).map_err(|_misspelled| NotHsts),
        }
    }
}

/// Shorter is taken for none by those who examine servers.
const HALF_YEAR: Duration = Duration::from_secs(180 * 86_400);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Hsts, NotHsts};

    #[test]
    fn it_is_a_time_or_off_or_taken_back() {
        for (text, said) in [
            ("off", Ok(Hsts::Off)),
            ("0", Ok(Hsts::For(Duration::ZERO))),
            ("1d", Ok(Hsts::For(Duration::from_secs(86_400)))),
            ("", Err(NotHsts)),
            ("on", Err(NotHsts)),
            ("31536000; includeSubDomains", Err(NotHsts)),
        ] {
            assert_eq!(text.parse(), said, "{text}");
        }
    }

    #[test]
    fn where_nobody_says_it_the_plain_port_decides() {
        assert_eq!(Hsts::usual(false).told(), None);
        assert_eq!(Hsts::usual(true).told(), Some(Duration::from_secs(15_552_000)));
    }
}
