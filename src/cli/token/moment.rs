//! A moment as a person writes and reads it.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat};

use crate::spelled;

/// When something is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Moment {
    In(Duration),
    /// Since the Unix epoch.
    At(Duration),
}

/// When something ends by itself, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Expiry {
    At(Moment),
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::cli) enum NotAMoment {
    #[error("a unit is wanted; say {0}s, {0}m, {0}h or {0}d")]
    NoUnit(u64),
    #[error("a span such as 90d or 12h is wanted, or a time with its zone such as 2027-01-31T00:00:00Z")]
    Misspelled,
    #[error("that is more than a hundred years away")]
    Far,
}

impl Moment {
    fn parse(text: &str) -> Result<Self, NotAMoment> {
        if let Some(span) = with_unit(text)? {
            return if span <= CENTURY { Ok(Self::In(span)) } else { Err(NotAMoment::Far) };
        }
        let time = DateTime::parse_from_rfc3339(text).map_err(|_misspelled| NotAMoment::Misspelled)?;
        // What lies before the epoch is past, which is said where that matters.
        let at = Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0));
        if at <= kit::clock::since_epoch().saturating_add(CENTURY) { Ok(Self::At(at)) } else { Err(NotAMoment::Far) }
    }

    /// Since the Unix epoch, where it is `now`.
    fn seen_from(self, now: Duration) -> Duration {
        match self {
            Self::In(span) => now.saturating_add(span),
            Self::At(time) => time,
        }
    }
}

impl Expiry {
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, NotAMoment> {
        if text == "never" { Ok(Self::Never) } else { Moment::parse(text).map(Self::At) }
    }

    /// Since the Unix epoch, where it is `now`.
    pub(in crate::cli) fn seen_from(self, now: Duration) -> Option<Duration> {
        match self {
            Self::At(moment) => Some(moment.seen_from(now)),
            Self::Never => None,
        }
    }
}

/// A span that may be none at all.
pub(super) fn span(text: &str) -> Result<Duration, NotAMoment> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => match with_unit(text)? {
            Some(span) if span <= CENTURY => Ok(span),
            Some(_) => Err(NotAMoment::Far),
            None => Err(NotAMoment::Misspelled),
        },
    }
}

/// Nobody means five seconds by a bare 5 where the others say 90d.
fn with_unit(text: &str) -> Result<Option<Duration>, NotAMoment> {
    match text.parse() {
        Ok(0) | Err(_) => Ok(spelled::duration(text).ok()),
        Ok(number) => Err(NotAMoment::NoUnit(number)),
    }
}

/// A time since the epoch as a UTC time, to the second.
pub(in crate::cli) fn rfc3339(time: Duration) -> String {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .map_or_else(|| "-".to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// More is a slip of the pen.
const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Expiry, Moment, NotAMoment, rfc3339, span};

    #[test]
    fn an_expiry_is_a_span_or_a_time_with_its_zone() {
        let now = Duration::from_secs(1_000_000_000);
        for (text, seconds) in [
            ("90d", 1_000_000_000 + 90 * 86_400),
            ("12h", 1_000_000_000 + 12 * 3600),
            ("2027-01-31T00:00:00Z", 1_801_353_600),
            ("2027-01-31T01:00:00+01:00", 1_801_353_600),
            ("1960-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(Moment::parse(text).map(|it| it.seen_from(now).as_secs()), Ok(seconds), "{text}");
        }
        for bad in ["", "0", "tomorrow", "2027-01-31", "2027-01-31T00:00:00", "2027-02-30T00:00:00Z", "-1d"] {
            assert_eq!(Moment::parse(bad), Err(NotAMoment::Misspelled), "{bad}");
        }
        assert!(Moment::parse("36600d").is_ok());
        for far in ["36601d", "2999-01-01T00:00:00Z"] {
            assert_eq!(Moment::parse(far), Err(NotAMoment::Far), "{far}");
        }
    }

    #[test]
    fn a_bare_number_is_asked_for_its_unit() {
        assert_eq!(Moment::parse("5"), Err(NotAMoment::NoUnit(5)));
        assert_eq!(Expiry::parse("90"), Err(NotAMoment::NoUnit(90)));
        assert_eq!(span("24"), Err(NotAMoment::NoUnit(24)));
        assert_eq!(NotAMoment::NoUnit(5).to_string(), "a unit is wanted; say 5s, 5m, 5h or 5d");
        assert!(Moment::parse("5s").is_ok());
    }

    #[test]
    fn an_expiry_may_be_never() {
        assert_eq!(Expiry::parse("never"), Ok(Expiry::Never));
        assert_eq!(Expiry::Never.seen_from(Duration::ZERO), None);
        let one = Expiry::parse("1s").map(|expiry| expiry.seen_from(Duration::from_secs(1)));
        assert_eq!(one, Ok(Some(Duration::from_secs(2))));
        assert_eq!(Expiry::parse("Never"), Err(NotAMoment::Misspelled));
    }

    #[test]
    fn a_grace_may_be_none() {
        assert_eq!(span("0"), Ok(Duration::ZERO));
        assert_eq!(span("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(span("2027-01-31T00:00:00Z"), Err(NotAMoment::Misspelled));
        assert_eq!(span("36601d"), Err(NotAMoment::Far));
    }

    #[test]
    fn seconds_since_the_epoch_become_a_date() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_796_000_523, "2026-11-30T01:02:03Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), expected);
        }
    }
}
