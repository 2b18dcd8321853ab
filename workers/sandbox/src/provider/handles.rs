//! The references that clients hold on sandboxes, and how long each sandbox has been of use to nobody.
//!
//! Pure: it takes `now`. `busy` says whether jobs of the tenant run: they keep references and sandbox alive.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use kit::Tenant;

use super::Fault;
use crate::settings::Clocks;

#[derive(Debug)]
pub(super) struct Handles {
    clocks: Clocks,
    references: HashMap<Tenant, References>,
    /// Since when nothing has been seen that needs the sandbox.
    quiet: HashMap<Tenant, Instant>,
    /// Sandboxes that are being stopped because nothing needs them.
    stopping: HashSet<Tenant>,
}

/// All references on one sandbox. They have one name, so that using one is using all.
#[derive(Clone, Copy, Debug)]
struct References {
    open: usize,
    used: Instant,
}

impl Handles {
    pub(super) fn new(clocks: Clocks) -> Self {
        Self { clocks, references: HashMap::new(), quiet: HashMap::new(), stopping: HashSet::new() }
    }

    /// Adds a reference. Those that nobody used for too long are gone by now, whoever held them.
    pub(super) fn open(&mut self, tenant: &Tenant, now: Instant, busy: bool) {
        let open = self.count(tenant, now, busy).saturating_add(1);
        self.references.insert(tenant.clone(), References { open, used: now });
        self.quiet.insert(tenant.clone(), now);
    }

    /// Takes a reference away; how many stay.
    pub(super) fn close(&mut self, tenant: &Tenant) -> usize {
        let Some(references) = self.references.get_mut(tenant) else { return 0 };
        references.open = references.open.saturating_sub(1);
        references.open
    }

    /// Notes that somebody used the tenant's name, if a reference stands behind it.
    pub(super) fn touch(&mut self, tenant: &Tenant, now: Instant, busy: bool) -> Result<(), Fault> {
        // A worker that was started anew knows no references, but their name: whoever held one goes on with it.
        let fresh = References { open: 1, used: now };
        let references = *self.references.entry(tenant.clone()).or_insert(fresh);
        if references.open == 0 {
            return Err(Fault::SessionClosed);
        }
        if self.count(tenant, now, busy) == 0 {
            return Err(Fault::NoSession);
        }
        self.references.insert(tenant.clone(), References { used: now, ..references });
        self.quiet.insert(tenant.clone(), now);
        Ok(())
    }

    /// How many references there are that have not expired.
    pub(super) fn count(&self, tenant: &Tenant, now: Instant, busy: bool) -> usize {
        let Some(references) = self.references.get(tenant) else { return 0 };
        let idle = now.saturating_duration_since(references.used) >= self.clocks.handle_idle;
        if idle && !busy { 0 } else { references.open }
    }

    pub(super) fn tenants(&self) -> Vec<Tenant> {
        self.references.keys().cloned().collect()
    }

    pub(super) fn forget(&mut self, tenant: &Tenant) {
        self.references.remove(tenant);
        self.quiet.remove(tenant);
    }

    /// Looks whether a running sandbox has been of use to nobody for long enough to be stopped. `populated` says whether
    /// processes of its commands are alive.
    pub(super) fn is_idle(&mut self, tenant: &Tenant, now: Instant, busy: bool, populated: bool) -> bool {
        if busy && let Some(references) = self.references.get_mut(tenant) {
            references.used = now;
        }
        if busy || populated || self.count(tenant, now, busy) > 0 {
            self.quiet.insert(tenant.clone(), now);
            return false;
        }
        let since = *self.quiet.entry(tenant.clone()).or_insert(now);
        now.saturating_duration_since(since) >= self.clocks.idle_stop
    }

    /// Decides that a sandbox is stopped, unless it is of use by now. From here to [`Handles::stopped`] whoever is about
    /// to use it has to wait.
    pub(super) fn begin_stop(&mut self, tenant: &Tenant, now: Instant, busy: bool, populated: bool) -> bool {
        let idle = self.is_idle(tenant, now, busy, populated);
        if idle {
            self.stopping.insert(tenant.clone());
        }
        idle
    }

    pub(super) fn stopped(&mut self, tenant: &Tenant) {
        self.stopping.remove(tenant);
        self.quiet.remove(tenant);
    }

    #[cfg(test)]
    pub(super) fn mark_stopping_for_test(&mut self, tenant: &Tenant) {
        self.stopping.insert(tenant.clone());
    }

    pub(super) fn is_stopping(&self, tenant: &Tenant) -> bool {
        self.stopping.contains(tenant)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::{Tenant, clock};

    use super::{Clocks, Fault, Handles};

    const HOUR: Duration = Duration::from_secs(3600);
    const MOMENT: Duration = Duration::from_millis(1);

    fn handles() -> (Handles, Tenant) {
        let clocks = Clocks { handle_idle: HOUR, idle_stop: HOUR / 4 };
        (Handles::new(clocks), Tenant::parse("a").unwrap())
    }

    #[test]
    fn references_expire_together_an_hour_after_the_last_use_and_not_a_moment_before() {
        let (mut handles, a) = handles();
        let begin = clock::now();
        handles.open(&a, begin, false);
        handles.open(&a, begin, false);
        assert!(handles.touch(&a, begin + HOUR - MOMENT, false).is_ok());
        let late = begin + HOUR - MOMENT + HOUR;
        assert_eq!((handles.count(&a, late - MOMENT, false), handles.count(&a, late, false)), (2, 0));
        // Twice the same answer: what has expired was not closed.
        for _ in 0..2 {
            assert!(matches!(handles.touch(&a, late, false), Err(Fault::NoSession)));
        }
        handles.open(&a, late, false);
        assert_eq!(handles.count(&a, late, false), 1, "the expired ones do not come back");
    }

    #[test]
    fn a_running_job_keeps_references_alive() {
        let (mut handles, a) = handles();
        let begin = clock::now();
        handles.open(&a, begin, false);
        assert!(handles.touch(&a, begin + HOUR * 2, true).is_ok());
        assert!(!handles.is_idle(&a, begin + HOUR * 4, true, false));
        assert!(handles.touch(&a, begin + HOUR * 5 - MOMENT, false).is_ok(), "an hour from when the job was seen last");
    }

    #[test]
    fn a_sandbox_is_idle_when_nothing_has_needed_it_for_long_enough() {
        let (mut handles, a) = handles();
        let begin = clock::now();
        let quarter = HOUR / 4;
        handles.open(&a, begin, false);
        assert!(!handles.is_idle(&a, begin + quarter, false, false), "a reference needs it");
        handles.close(&a);
        let closed = begin + quarter;
        assert!(!handles.is_idle(&a, closed + quarter - MOMENT, false, false));
        assert!(!handles.is_idle(&a, closed + quarter - MOMENT, false, true), "a process needs it");
        let ended = closed + quarter - MOMENT;
        assert!(!handles.is_idle(&a, ended + quarter - MOMENT, false, false));
        assert!(handles.begin_stop(&a, ended + quarter, false, false) && handles.is_stopping(&a));
        handles.stopped(&a);
        assert!(!handles.is_stopping(&a));
        // One that nobody here has opened begins to be quiet when it is seen first.
        let b = Tenant::parse("b").unwrap();
        assert!(!handles.is_idle(&b, begin, false, false));
        assert!(handles.is_idle(&b, begin + quarter, false, false));
    }

    #[test]
    fn who_opens_in_time_keeps_the_sandbox_running() {
        let (mut handles, a) = handles();
        let begin = clock::now();
        assert!(!handles.is_idle(&a, begin, false, false));
        assert!(handles.is_idle(&a, begin + HOUR, false, false));
        handles.open(&a, begin + HOUR, false);
        assert!(!handles.begin_stop(&a, begin + HOUR, false, false));
    }
}
