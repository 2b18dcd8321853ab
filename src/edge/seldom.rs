//! What happens often and is told seldom.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When something was told last; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seldom(Arc<Mutex<Option<Instant>>>);

impl Seldom {
    /// Whether it is to be told again: once a second at most.
    pub(crate) fn is_due(&self) -> bool {
        let now = kit::clock::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// How often something happened since it was told last; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    last: Option<Instant>,
    untold: u64,
}

impl Tally {
    /// Counts it once more; how often it has happened where that is to be told: once a minute at most.
    pub(crate) fn count(&self) -> Option<u64> {
        self.count_at(kit::clock::now())
    }

    fn count_at(&self, now: Instant) -> Option<u64> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.untold = counted.untold.saturating_add(1);
        if counted.last.is_some_and(|last| now.duration_since(last) < LONG_PAUSE) {
            return None;
        }
        counted.last = Some(now);
        Some(std::mem::take(&mut counted.untold))
    }
}

const PAUSE: Duration = Duration::from_secs(1);
const LONG_PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::{LONG_PAUSE, Seldom, Tally};
    use std::time::Duration;

    #[test]
    fn what_was_not_told_is_counted_with_what_is() {
        let (tally, begun) = (Tally::default(), kit::clock::now());
        assert_eq!(tally.count_at(begun), Some(1));
        assert_eq!(tally.count_at(begun), None);
        assert_eq!(tally.clone().count_at(begun + LONG_PAUSE - Duration::from_nanos(1)), None);
        assert_eq!(tally.count_at(begun + LONG_PAUSE), Some(3));
    }

    #[test]
    fn it_is_told_once_and_not_at_once_again() {
        let (seldom, other) = (Seldom::default(), Seldom::default());
        let clone = seldom.clone();
        assert!(seldom.is_due());
        assert!(!seldom.is_due() && !clone.is_due());
        assert!(other.is_due());
    }
}
