//! How long to leave a command alone that has failed: longer with every failure in a row.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Patience {
    failures: u32,
    until: Option<Instant>,
}

impl Patience {
    /// How long nobody may start it, if it is left alone now.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        self.until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero())
    }

    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.until = now.checked_add(pause);
        pause
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// It ended by itself after a while. One that has run for long is started again at once.
    pub(crate) fn ended(&mut self, lived: Duration, now: Instant) -> Duration {
        if lived >= LONGEST_PAUSE {
            self.succeeded();
            return Duration::ZERO;
        }
        self.failed(now)
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LONGEST_PAUSE, Patience};

    #[test]
    fn a_command_that_fails_is_left_alone_longer_each_time() {
        let now = kit::clock::now();
        let mut patience = Patience::default();
        assert_eq!(patience.left(now), None);
        assert_eq!(patience.failed(now), Duration::from_millis(500));
        assert_eq!(patience.failed(now), Duration::from_secs(1));
        assert_eq!(patience.left(now), Some(Duration::from_secs(1)));
        assert_eq!(patience.left(now + Duration::from_secs(1)), None);
        for _ in 0..40 {
            patience.failed(now);
        }
        assert_eq!(patience.failed(now), LONGEST_PAUSE);
        patience.succeeded();
        assert_eq!(patience.left(now), None);
    }

    #[test]
    fn one_that_ran_for_long_is_started_again_at_once() {
        let now = kit::clock::now();
        let mut patience = Patience::default();
        let short = LONGEST_PAUSE - Duration::from_nanos(1);
        assert_eq!(patience.ended(short, now), Duration::from_millis(500));
        assert_eq!(patience.ended(short, now), Duration::from_secs(1));
        assert_eq!(patience.ended(LONGEST_PAUSE, now), Duration::ZERO);
        assert_eq!(patience.left(now), None);
        assert_eq!(patience.ended(short, now), Duration::from_millis(500));
    }
}
