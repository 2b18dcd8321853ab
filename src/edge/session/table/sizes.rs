//! How much a table of sessions holds.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::Table;

/// Numbers of one moment.
pub(crate) struct Sizes {
    /// Live sessions that have an entry, and places that are taken for ones about to open.
    pub(crate) by_tenant: BTreeMap<String, usize>,
    pub(crate) live: usize,
    pub(crate) tombstones: usize,
    /// Ended sessions of which a worker is still to be told.
    pub(crate) departed: usize,
    /// Requests under way within sessions.
    pub(crate) flights: usize,
}

impl Table {
    pub(in crate::edge::session) fn sizes(&self, flights: usize) -> Sizes {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_tenant: BTreeMap<_, _> =
            state.by_tenant.iter().map(|(tenant, own)| (tenant.as_str().to_owned(), own.len())).collect();
        for (tenant, own) in state.fixed.by_tenant() {
            *by_tenant.entry(tenant.as_str().to_owned()).or_default() += own;
        }
        Sizes {
            by_tenant,
            live: state.live.len(),
            tombstones: state.ended.values().map(|ended| ended.sessions.len()).sum(),
            departed: state.fixed.waiting(),
            flights,
        }
    }
}
