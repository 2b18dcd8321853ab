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

const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::Seldom;

    #[test]
    fn it_is_told_once_and_not_at_once_again() {
        let (seldom, other) = (Seldom::default(), Seldom::default());
        let clone = seldom.clone();
        assert!(seldom.is_due());
        assert!(!seldom.is_due() && !clone.is_due());
        assert!(other.is_due());
    }
}
