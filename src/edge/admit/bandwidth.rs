//! How fast the answers of a tenant leave.
//!
//! What is on its way to one tenant costs the edge as much work as what is on its way to another, so that one who takes
//! large answers over many connections would have everybody else wait. A line is the time that a tenant's bytes take at
//! the rate it may have; what goes beyond that waits, and first asked is first served.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kit::Tenant;

/// The lines of all tenants.
pub(super) struct Bandwidth(Mutex<Lines>);

struct Lines {
    per_second: u64,
    /// Until when each tenant's line is taken; one that is free again is as good as none.
    taken: HashMap<Tenant, Instant>,
    /// How many entries there may be before those of free lines are dropped.
    sweep_at: usize,
}

impl Bandwidth {
    pub(super) fn new(per_second: u64) -> Self {
        Self(Mutex::new(Lines { per_second, taken: HashMap::new(), sweep_at: SWEEP_AT }))
    }

    /// Takes up another rate, for what is sent from now on.
    pub(super) fn adopt(&self, per_second: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).per_second = per_second;
    }

    /// Counts bytes that have been handed on, and says how long their tenant has to wait before it may have more.
    pub(super) fn take(&self, tenant: &Tenant, bytes: usize) -> Duration {
        let now = kit::clock::now();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cost = cost(bytes, lines.per_second);
        let until = lines.extend(tenant, cost, now);
        until.saturating_duration_since(now).saturating_sub(AT_ONCE)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).taken.len()
    }
}

impl Lines {
    /// Takes so much more of a tenant's line, and says until when it is taken then.
    fn extend(&mut self, tenant: &Tenant, cost: Duration, now: Instant) -> Instant {
        let after = |until: Instant| until.checked_add(cost).unwrap_or(until);
        if let Some(until) = self.taken.get_mut(tenant) {
            *until = after((*until).max(now));
            return *until;
        }
        if self.taken.len() >= self.sweep_at {
            self.taken.retain(|_, until| *until > now);
            // What is left is in use, and only as many tenants as have exchanges can be.
            self.sweep_at = self.taken.len().saturating_mul(2).max(SWEEP_AT);
        }
        self.taken.insert(tenant.clone(), after(now));
        after(now)
    }
}

fn cost(bytes: usize, per_second: u64) -> Duration {
    let nanos =
        u128::try_from(bytes).unwrap_or(u128::MAX).saturating_mul(1_000_000_000) / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// So much of a tenant's time may be taken before it waits: an answer of the usual bound passes without a pause.
const AT_ONCE: Duration = Duration::from_millis(250);

const SWEEP_AT: usize = 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::Tenant;

    use super::{AT_ONCE, Bandwidth, SWEEP_AT};

    const MIB: usize = 1 << 20;

    fn tenant(name: &str) -> Tenant {
        Tenant::parse(name).expect("a tenant")
    }

    #[test]
    fn what_fits_passes_at_once_and_more_waits_for_its_time() {
        let lines = Bandwidth::new(4 << 20);
        assert_eq!(lines.take(&tenant("alice"), MIB), Duration::ZERO, "a quarter of a second at that rate");
        let wait = lines.take(&tenant("alice"), 4 * MIB);
        assert!(wait > Duration::from_millis(900) && wait <= Duration::from_secs(1), "{wait:?}");
        let more = lines.take(&tenant("alice"), 4 * MIB);
        assert!(more > wait, "who asks later waits longer: {more:?}");
        assert_eq!(lines.take(&tenant("bob"), MIB), Duration::ZERO, "nobody else waits");
    }

    #[test]
    fn another_rate_holds_from_the_next_bytes_on() {
        let lines = Bandwidth::new(1);
        lines.adopt(u64::MAX);
        assert_eq!(lines.take(&tenant("alice"), MIB), Duration::ZERO);
        lines.adopt(0);
        assert!(lines.take(&tenant("alice"), MIB) > AT_ONCE, "no rate is the least there is, and no fault");
    }

    #[test]
    fn lines_that_are_free_again_are_forgotten() {
        let lines = Bandwidth::new(u64::MAX);
        for number in 0..10 * SWEEP_AT {
            lines.take(&tenant(&format!("t{number}")), 1);
        }
        assert!(lines.len() <= SWEEP_AT, "{}", lines.len());
        let slow = Bandwidth::new(1);
        for number in 0..3 * SWEEP_AT {
            slow.take(&tenant(&format!("t{number}")), 1000);
        }
        assert_eq!(slow.len(), 3 * SWEEP_AT, "what is still owed is not forgotten");
    }
}
