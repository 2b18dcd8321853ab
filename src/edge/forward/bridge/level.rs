//! How grave a line of a worker's log is.

/// Ordered, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(usize);

impl Level {
    pub(super) fn parse(name: &str) -> Option<Self> {
        LEVELS.iter().position(|known| *known == name).map(Self)
    }

    pub(super) fn name(self) -> &'static str {
        LEVELS.get(self.0).copied().expect("a level is made of its place among them")
    }
}

/// The protocol's, the least grave first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
