//! Until when a whole call may take.

use std::time::{Duration, Instant};

/// The end of a call's time; a stream that has no end of its own has none here either.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    total: Duration,
    at: Option<Instant>,
}

impl Deadline {
    pub(super) fn after(total: Duration) -> Self {
        // A time beyond what the clock can say is no limit.
        Self { total, at: kit::clock::now().checked_add(total) }
    }

    pub(super) fn never() -> Self {
        Self { total: Duration::MAX, at: None }
    }

    pub(super) fn total(self) -> Duration {
        self.total
    }

    /// Nothing once it is over.
    pub(super) fn left(self, now: Instant) -> Duration {
        self.at.map_or(Duration::MAX, |at| at.saturating_duration_since(now))
    }
}
