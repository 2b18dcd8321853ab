//! What is kept of workers between exchanges.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use kit::tasks::Tasks;

use crate::edge::config::Answers;
use crate::worker::terms::Bridge;
use crate::worker::{Loopback, Routes, Upstream};

use super::bridge;
use super::pool::Pool;

/// The kept connections, which outlive a change of configuration.
#[derive(Clone, Default)]
// One entry a worker, and the routes bound those.
pub(crate) struct Pools(Arc<Mutex<HashMap<Loopback, Arc<Pool>>>>, pub(super) bridge::Kept);

impl Pools {
    /// Forgets what belongs to workers that are no longer there: connections, and the bridge's sessions.
    pub(crate) fn keep(&self, routes: &Routes) {
        let is_routed: HashSet<_> = routes.workers().map(|worker| worker.address).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|address, _| is_routed.contains(address));
        self.1.keep(|tenant, address, path| {
            routes.of_tenant(tenant).any(|Upstream { address: known, terms, .. }| {
                *known == address && terms.path == *path && terms.bridge == Bridge::Modern
            })
        });
    }

    pub(super) fn of(&self, upstream: &Upstream, limits: &Answers, drivers: &Tasks) -> Arc<Pool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Pool::new(upstream.address, limits, drivers.clone()));
        Arc::clone(pools.entry(upstream.address).or_insert_with(fresh))
    }

    /// Workers that there has been an exchange with.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Connections that rest.
    pub(crate) fn resting(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|pool| pool.resting()).sum()
    }

    /// Sessions that are kept with workers, by tenant.
    pub(crate) fn bridged(&self) -> BTreeMap<String, usize> {
        self.1.by_tenant()
    }
}
