//! The MCP revisions the edge knows.

/// A revision, oldest last, as clients are told of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    Modern20260728,
    Legacy20251125,
    Legacy20250618,
    Legacy20250326,
}

impl Version {
    pub(crate) const ALL: [Self; 4] =
        [Self::Modern20260728, Self::Legacy20251125, Self::Legacy20250618, Self::Legacy20250326];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Modern20260728 => FIRST_MODERN,
            Self::Legacy20251125 => "2025-11-25",
            Self::Legacy20250618 => "2025-06-18",
            Self::Legacy20250326 => "2025-03-26",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// A revision that has sessions.
    pub(crate) fn parse_legacy(text: &str) -> Option<Self> {
        Self::parse(text).filter(|version| version.is_legacy())
    }

    /// A revision from before those, if `text` names one. A worker's library may still agree on it; the edge carries none.
    pub(crate) fn retired(text: &str) -> Option<&'static str> {
        RETIRED.into_iter().find(|revision| *revision == text)
    }

    pub(crate) fn is_legacy(self) -> bool {
        self != Self::Modern20260728
    }

    /// Whether a header value names a revision of the stateless era, known or not: revisions are dates.
    pub(crate) fn names_modern(text: &str) -> bool {
        let date = text.len() == FIRST_MODERN.len()
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
        date && text >= FIRST_MODERN
    }

    /// The number that stands for the revision in a sealed session id; never reused.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Legacy20250326 => 1,
            Self::Legacy20250618 => 2,
            Self::Legacy20251125 => 3,
            Self::Modern20260728 => 4,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }
}

const FIRST_MODERN: &str = "2026-07-28";

/// Their transport had two addresses, which nothing here offers.
const RETIRED: [&str; 2] = ["2024-11-05", "2024-10-07"];

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn a_later_date_is_modern_even_when_unknown() {
        for modern in ["2026-07-28", "2026-07-29", "2099-01-01"] {
            assert!(Version::names_modern(modern), "{modern}");
        }
        for other in ["2025-11-25", "2026-07-27", "9", "zzzz", "2026-07-2x", "draft"] {
            assert!(!Version::names_modern(other), "{other}");
        }
    }
}
