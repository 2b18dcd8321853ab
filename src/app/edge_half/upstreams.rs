//! The workers of an edge over its configurations: one that did not change keeps what is known of it.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use kit::Tenant;
use kit::tasks::Tasks;

use super::Fault;
use crate::app::words::{self, BeginEdge};
use crate::identity::Catalogue;
use crate::identity::store::ClearRule;
use crate::worker::{Barred, Loopback, Presence, Routes, Upstream, barred, probe};

pub(super) struct Upstreams {
    /// Of the sandbox worker, as the supervisor says.
    presence: Presence,
    /// Of the same, as the supervisor says, or as the worker does where that is another service's.
    barred: Barred,
    asks_sandbox: bool,
    last: Vec<Arc<Upstream>>,
    /// Whose eras are being looked after.
    followed: Vec<Weak<Upstream>>,
    native: NativeTenants,
}

/// Who has a worker of their own now; clones share the answer.
#[derive(Clone, Default)]
struct NativeTenants(Arc<RwLock<HashSet<Tenant>>>);

impl Upstreams {
    pub(super) fn new(begin: &BeginEdge, presence: Presence) -> Self {
        let these = Self {
            presence,
            barred: Barred::default(),
            asks_sandbox: begin.asks_sandbox,
            last: Vec::new(),
            followed: Vec::new(),
            native: NativeTenants::default(),
        };
        these.settle(begin);
        these
    }

    /// The same with those that the sandbox worker would refuse.
    pub(super) fn barring(self, barred: Barred) -> Self {
        Self { barred, ..self }
    }

    /// Who would be let in for nothing: whoever has no other worker than the one that would refuse them.
    pub(super) fn refused(&self) -> Arc<dyn Fn(&Tenant) -> bool + Send + Sync> {
        let (barred, native) = (self.barred.clone(), self.native.clone());
        Arc::new(move |tenant: &Tenant| barred.has(tenant) && !native.has(tenant))
    }

    /// The routes of a configuration.
    ///
    /// A worker at an address that it had before keeps what was found out about it, and one that is the same in all is
    /// the same one.
    pub(super) fn routes(&mut self, begin: &BeginEdge) -> Result<Routes, Fault> {
        let mut routes = Routes::new();
        if let Some(sandbox) = &begin.sandbox {
            let worker = Upstream::sandbox(Loopback::new(sandbox.address)?, sandbox.bearer.clone());
            let worker = Upstream { presence: self.presence.clone(), barred: self.barred.clone(), ..worker };
            routes = routes.with_sandbox(self.kept(worker, sandbox));
        }
        for native in &begin.native {
            let address = Loopback::new(native.worker.address)?;
            let worker = Upstream::native(address, native.worker.bearer.clone());
            routes = routes.with_native(native.tenant.clone(), self.kept(worker, &native.worker));
        }
        self.last = routes.workers().cloned().collect();
        Ok(routes)
    }

    /// Finds out, beside the requests, what the native workers of the last routes speak; ours speaks both eras. And whom
    /// the sandbox bars, where nobody tells us.
    pub(super) fn follow(&mut self, tasks: &Tasks) {
        self.followed.retain(|worker| worker.strong_count() > 0);
        for upstream in &self.last {
            let worker = Arc::downgrade(upstream);
            if self.followed.iter().any(|followed| followed.ptr_eq(&worker)) {
                continue;
            }
            if !upstream.sends_tenant {
                tasks.start(probe::follow(worker.clone()));
            } else if self.asks_sandbox {
                tasks.start(barred::follow(worker.clone()));
            }
            self.followed.push(worker);
        }
    }

    fn kept(&self, worker: Upstream, words: &words::Upstream) -> Arc<Upstream> {
        let worker = Upstream { terms: words.terms.clone(), ..worker };
        let known = self.last.iter().find(|last| last.name == worker.name && last.address == worker.address);
        match known {
            Some(last) if last.bearer == worker.bearer && last.terms == worker.terms => Arc::clone(last),
            Some(last) => Arc::new(Upstream {
                presence: last.presence.clone(),
                eras: last.eras.clone(),
                health: last.health.clone(),
                ..worker
            }),
            None => Arc::new(worker),
        }
    }

    /// From now on credentials of the original's form reach what this configuration says.
    pub(super) fn settle(&self, begin: &BeginEdge) {
        let tenants = begin.native.iter().map(|native| native.tenant.clone()).collect();
        *self.native.0.write().unwrap_or_else(PoisonError::into_inner) = tenants;
    }

    /// What a credential of the original's form reaches: its own worker where it has one, else the sandbox where there
    /// is one.
    pub(super) fn rule(&self, begin: &BeginEdge) -> ClearRule {
        let (native, sandbox) = (self.native.clone(), begin.sandbox.is_some());
        let catalogue = move |tenant: &Tenant| {
            if !sandbox || native.has(tenant) { Catalogue::Native } else { Catalogue::Sandbox }
        };
        ClearRule { backend: begin.backend.clone(), catalogue: Box::new(catalogue) }
    }
}

impl NativeTenants {
    fn has(&self, tenant: &Tenant) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kit::{Secret, Tenant};

    use super::Upstreams;
    use crate::app::words::{BeginEdge, Keys, Native, Upstream};
    use crate::identity::Catalogue;
    use crate::store::Loose;
    use crate::worker::{Presence, Terms};

    fn begin(native: &[(&str, u16, &str)]) -> BeginEdge {
        let upstream = |port: u16, bearer: &str| Upstream {
            address: ([127, 0, 0, 1], port).into(),
            bearer: Secret::new(bearer),
            up: true,
            terms: Terms::default(),
        };
        let row = |(tenant, port, bearer): &(&str, u16, &str)| Native {
            tenant: Tenant::parse(tenant).expect("a tenant"),
            worker: upstream(*port, bearer),
        };
        BeginEdge {
            verbosity: "info".to_owned(),
            limits: crate::edge::Config::default(),
            session_keys: Keys::one([0; 32]),
            store: "tokens.json".to_owned(),
            loose: Loose::Refuse,
            oauth: None,
            external: None,
            trust: None,
            backend: "linux".to_owned(),
            sandbox: Some(upstream(1, "s")),
            asks_sandbox: false,
            native: native.iter().map(row).collect(),
            tls: Vec::new(),
            client_ca: None,
            acme: None,
            audit: None,
        }
    }

    #[test]
    fn a_worker_that_did_not_change_is_the_same_one_and_keeps_what_is_known_of_it() {
        let first = begin(&[("a", 2, "k"), ("b", 3, "k")]);
        let mut upstreams = Upstreams::new(&first, Presence::up());
        let before = upstreams.routes(&first).expect("routes");
        let after = upstreams.routes(&begin(&[("a", 2, "k"), ("b", 3, "other")])).expect("routes");
        let at = |routes: &crate::worker::Routes, port: u16| {
            routes.workers().find(|worker| worker.address.socket().port() == port).cloned().expect("a worker")
        };
        for same in [1, 2] {
            assert!(Arc::ptr_eq(&at(&before, same), &at(&after, same)), "{same}");
        }
        let (was, is) = (at(&before, 3), at(&after, 3));
        assert!(!Arc::ptr_eq(&was, &is) && is.bearer == Secret::new("other"));
        was.presence.set(false);
        assert!(!is.presence.is_up(), "it is the same process");
    }

    #[test]
    fn a_credential_of_the_originals_form_follows_the_list_of_workers() {
        let tenant = Tenant::parse("a").expect("a tenant");
        let (without, with) = (begin(&[]), begin(&[("a", 2, "k")]));
        let upstreams = Upstreams::new(&without, Presence::up());
        let rule = upstreams.rule(&without);
        assert_eq!((rule.catalogue)(&tenant), Catalogue::Sandbox);
        upstreams.settle(&with);
        assert_eq!((rule.catalogue)(&tenant), Catalogue::Native);
        upstreams.settle(&without);
        assert_eq!((rule.catalogue)(&tenant), Catalogue::Sandbox);
    }
}
