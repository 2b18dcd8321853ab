//! Stopping sandboxes that nothing needs: no reference, no job, no process.
//!
//! A stop happens in the tenant's turn and is decided there once more; who comes while it lasts waits for it and starts
//! the sandbox again. So nobody's command meets a sandbox that is on its way out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::{Tenant, clock};
use tokio::time::sleep;

use super::Provider;

impl Provider {
    /// Looks for idle sandboxes from time to time, for as long as somebody holds the provider.
    pub(crate) fn watch_idle(&self) {
        let (inner, period) = (Arc::downgrade(&self.0), (self.0.clocks.idle_stop / 4).clamp(SHORTEST, LONGEST));
        self.0.watch.start(async move {
            loop {
                sleep(period).await;
                let Some(inner) = inner.upgrade() else { return };
                Self(inner).stop_idle(clock::now()).await;
            }
        });
    }

    /// Stops what has been idle for long enough at `now`.
    pub(crate) async fn stop_idle(&self, now: Instant) {
        let tenants = match self.0.backend.tenants().await {
            Ok(tenants) => tenants,
            Err(fault) => {
                tracing::warn!(%fault, "idle sandboxes cannot be looked for");
                return;
            }
        };
        for tenant in tenants.into_iter().filter(|tenant| self.0.backend.is_live(tenant)) {
            if !self.is_idle(&tenant, now) {
                continue;
            }
            let (this, owner) = (self.clone(), tenant.clone());
            let stop = async move { this.stop_if_idle(&owner, now).await };
            if let Err(fault) = self.in_turn(&tenant, stop).await {
                tracing::warn!(%tenant, %fault, "an idle sandbox cannot be stopped");
            }
        }
    }

    fn is_idle(&self, tenant: &Tenant, now: Instant) -> bool {
        let (busy, populated) = (self.is_busy(tenant), self.0.backend.has_processes(tenant));
        self.handles().is_idle(tenant, now, busy, populated)
    }

    async fn stop_if_idle(&self, tenant: &Tenant, now: Instant) -> Result<(), crate::backend::BackendError> {
        let populated = self.0.backend.has_processes(tenant);
        let begun = {
            let mut handles = self.handles();
            // Asked under the lock: whoever is to start a job has touched a reference under it before.
            let busy = self.is_busy(tenant);
            handles.begin_stop(tenant, now, busy, populated)
        };
        if !begun {
            return Ok(());
        }
        tracing::info!(%tenant, "the sandbox is stopped: nothing has needed it for a while");
        let stopped = self.0.backend.stop(tenant).await;
        self.handles().stopped(tenant);
        stopped
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
