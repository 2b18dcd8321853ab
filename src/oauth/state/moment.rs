//! A time on the wall clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    #[must_use]
    pub fn of(since_epoch: Duration) -> Self {
        Self(since_epoch.as_secs())
    }

    #[must_use]
    pub fn since_epoch(self) -> Duration {
        Duration::from_secs(self.0)
    }

    pub(super) fn after(self, life: Duration) -> Self {
        Self(self.0.saturating_add(life.as_secs()))
    }

    /// How long it is until then; nothing when it is past.
    pub(super) fn left(self, now: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(now.0))
    }

    /// Whether an end is reached, or lies beyond `whole`, which no end that was set by this clock can.
    pub(super) fn is_over(self, now: Self, whole: Duration) -> bool {
        let left = self.left(now);
        left.is_zero() || left > whole
    }
}
