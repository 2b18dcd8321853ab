//! Tenants whose sandbox their operator has disabled.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use kit::Tenant;

use super::Upstream;
use super::probe::ask;

/// Who is to be refused, as the worker says; clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Barred(Arc<RwLock<HashSet<Tenant>>>);

impl Barred {
    /// These from now on, and nobody else.
    pub fn set(&self, tenants: impl IntoIterator<Item = Tenant>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tenants.into_iter().collect();
    }

    #[must_use]
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }
}

/// Asks a worker of another service for them, again and again, until nobody routes to it any more.
///
/// What it said last counts while it is away: it refuses them itself, and nobody else loses by that.
pub async fn follow(worker: Weak<Upstream>) {
    while let Some(upstream) = worker.upgrade() {
        match ask::barred(&upstream, PATIENCE).await {
            Ok(tenants) => upstream.barred.set(tenants),
            Err(fault) => {
                tracing::debug!(worker = upstream.label(), fault = kit::chain(&fault), "whom it bars is not known")
            }
        }
        // The routes alone decide how long there is such a worker.
        drop(upstream);
        tokio::time::sleep(PAUSE).await;
    }
}

/// A disabled tenant is let in to nothing meanwhile.
const PAUSE: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(10);
