//! A live session as its operator sees it.

use std::fmt;
use std::time::Duration;

use data_encoding::HEXLOWER;
use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::identity::{Catalogue, CredentialId};

use super::seal::SessionId;

/// What an operator calls a session: a part of the number that its sealed id holds. It opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionName([u8; NAME_LENGTH]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session's name is `s-` and {} of 0-9 a-f, as `session list` shows it", NAME_LENGTH * 2)]
pub struct NotAName;

/// What is known of a live session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSession {
    pub name: SessionName,
    pub tenant: Tenant,
    pub catalogue: Catalogue,
    pub worker: String,
    /// By which it was used last.
    pub credential: CredentialId,
    /// What its client says that it is, where this edge has heard it; anybody may say anything.
    pub stated: Option<String>,
    /// From where it was used last.
    pub address: String,
    /// Both since the Unix epoch.
    pub opened: Duration,
    pub expires: Duration,
    /// Since its last use.
    pub idle: Duration,
}

/// Why a session was not ended at an operator's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEnded {
    #[error("no live session of this edge is called so")]
    Unknown,
    #[error("it has ended, but that cannot be written down: an edge that is started again would serve it")]
    Unrecorded,
}

impl SessionName {
    pub(super) fn of(id: SessionId) -> Self {
        Self(id.beginning())
    }

    /// A name as it was shown.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let digits = text.strip_prefix("s-").ok_or(NotAName)?;
        let bytes = HEXLOWER.decode(digits.as_bytes()).map_err(|_digits| NotAName)?;
        bytes.try_into().map(Self).map_err(|_length| NotAName)
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("s-")?;
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl TryFrom<String> for SessionName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        Self::parse(&text)
    }
}

impl From<SessionName> for String {
    fn from(name: SessionName) -> Self {
        name.to_string()
    }
}

/// Of as many sessions as a table holds, no two are called the same but once in a million edges.
pub(super) const NAME_LENGTH: usize = 6;

#[cfg(test)]
mod tests {
    use super::SessionName;

    #[test]
    fn a_name_is_read_as_it_was_shown_and_in_no_other_way() {
        let name = SessionName([0, 1, 0x2a, 0xff, 0x10, 9]);
        assert_eq!(name.to_string(), "s-00012aff1009");
        assert_eq!(SessionName::parse(&name.to_string()), Ok(name));
        for bad in ["", "s-", "00012aff1009", "s-00012aff100", "s-00012aff10099", "s-00012AFF1009", "s-+0012aff1009"] {
            assert!(SessionName::parse(bad).is_err(), "{bad}");
        }
    }
}
