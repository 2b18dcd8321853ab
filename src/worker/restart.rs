//! When a child that ended is started again.
//!
//! Pure: it takes `now`. A child that lived for a while is started again at once; one that keeps dying young waits twice
//! as long each time, up to a bound; one that said a restart would be wrong is never started again.
//!
//! ```text
//!   started ──ended, settled──> after `first`
//!      │────ended, young──────> after first, 2·first, 4·first … most
//!      └────ended, hopeless───> never
//! ```

use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// One child's history.
#[derive(Clone, Debug)]
pub struct Restart {
    policy: Policy,
    started: Option<Instant>,
    young: u32,
    hopeless: bool,
}

/// How patient a restart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The wait after a first death.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// A child that lived this long has not died young.
    pub settled: Duration,
}

/// How a child ended, as far as a restart cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Exit 11: it could not prove that a command tree is dead. Starting another would hide that.
    ControlLost,
    /// Exit 10: its configuration is wrong and will be the next time too.
    Misconfigured,
    /// Anything else: a fault, a signal, or an end that nobody asked for.
    Fell,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    After(Duration),
    Never,
}

impl Restart {
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, started: None, young: 0, hopeless: false }
    }

    /// The child was started.
    pub fn started(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// The child ended, or could not be started.
    pub fn ended(&mut self, now: Instant, ending: Ending) -> Next {
        match ending {
            Ending::ControlLost | Ending::Misconfigured => self.hopeless = true,
            Ending::Fell => {}
        }
        if self.hopeless {
            return Next::Never;
        }
        let lived = self.started.take().map_or(Duration::ZERO, |started| now.saturating_duration_since(started));
        if lived >= self.policy.settled {
            self.young = 0;
        }
        let factor = 2_u32.saturating_pow(self.young);
        self.young = self.young.saturating_add(1);
        Next::After(self.policy.first.saturating_mul(factor).min(self.policy.most))
    }
}

impl Policy {
    /// The edge faces clients that wait, so a single death costs them next to nothing.
    pub const EDGE: Self =
        Self { first: Duration::from_millis(50), most: Duration::from_secs(10), settled: Duration::from_secs(10) };

    /// A worker that keeps falling takes sandboxes with it, so it waits longer between.
    pub const WORKER: Self =
        Self { first: Duration::from_millis(50), most: Duration::from_secs(30), settled: Duration::from_secs(10) };
}

impl Ending {
    #[must_use]
    pub fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(10) => Self::Misconfigured,
            Some(11) => Self::ControlLost,
            Some(_) | None => Self::Fell,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::{Ending, Next, Policy, Restart};

    const POLICY: Policy =
        Policy { first: Duration::from_millis(50), most: Duration::from_secs(10), settled: Duration::from_secs(5) };

    #[test]
    fn an_exit_status_says_how_a_child_ended() {
        let exited = |code: i32| Ending::of(ExitStatus::from_raw(code << 8));
        assert_eq!(exited(9), Ending::Fell);
        assert_eq!(exited(10), Ending::Misconfigured);
        assert_eq!(exited(11), Ending::ControlLost);
        assert_eq!(exited(12), Ending::Fell);
        assert_eq!(Ending::of(ExitStatus::from_raw(9)), Ending::Fell, "killed by SIGKILL");
    }

    #[test]
    fn a_child_that_keeps_dying_young_waits_twice_as_long_each_time() {
        let (mut restart, now) = (Restart::new(POLICY), at(0));
        let mut waits = Vec::new();
        for _ in 0..10 {
            restart.started(now);
            waits.push(restart.ended(now, Ending::Fell));
        }
        let expected = [50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
        assert_eq!(waits, expected.map(|wait| Next::After(Duration::from_millis(wait))));
    }

    #[test]
    fn a_life_one_tick_short_of_settled_still_counts_as_young() {
        for (lived, expected) in [(4_999, 100), (5_000, 50)] {
            let mut restart = Restart::new(POLICY);
            restart.started(at(0));
            restart.ended(at(0), Ending::Fell);
            restart.started(at(0));
            assert_eq!(restart.ended(at(lived), Ending::Fell), Next::After(Duration::from_millis(expected)), "{lived}");
        }
    }

    proptest! {
        #[test]
        fn a_wait_is_bounded_and_a_hopeless_child_never_returns(
            lives in prop::collection::vec((0_u64..20_000, 0_u8..20), 1..200),
        ) {
            let (mut restart, mut clock, mut hopeless) = (Restart::new(POLICY), 0, false);
            for (lived, ending) in lives {
                restart.started(at(clock));
                clock += lived;
                let ending = match ending { 0 => Ending::ControlLost, 1 => Ending::Misconfigured, _ => Ending::Fell };
                hopeless |= ending != Ending::Fell;
                match restart.ended(at(clock), ending) {
                    Next::Never => prop_assert!(hopeless),
                    Next::After(wait) => {
                        prop_assert!(!hopeless);
                        prop_assert!(wait >= POLICY.first && wait <= POLICY.most);
                        prop_assert!(lived < 5_000 || wait == POLICY.first, "a settled child comes back at once");
                    }
                }
            }
        }
    }

    /// A moment this many milliseconds after an arbitrary beginning.
    fn at(milliseconds: u64) -> Instant {
        static BEGINNING: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *BEGINNING.get_or_init(kit::clock::now) + Duration::from_millis(milliseconds)
    }
}
