//! Which programs run for which tenant.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::Tenant;

use super::Process;

/// The programs that run for tenants. Those that have ended are forgotten at the next look.
#[derive(Debug, Default)]
pub struct Running(Mutex<BTreeMap<Tenant, Vec<Process>>>);

impl Running {
    pub fn add(&self, tenant: &Tenant, process: Process) {
        let mut all = self.all();
        let own = all.entry(tenant.clone()).or_default();
        own.retain(Process::is_alive);
        own.push(process);
    }

    #[must_use]
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.all().get(tenant).is_some_and(|own| own.iter().any(Process::is_alive))
    }

    /// Ends all of one tenant's, each after `grace` at the latest.
    pub async fn end(&self, tenant: &Tenant, grace: Duration) {
        let own = self.all().remove(tenant).unwrap_or_default();
        end(own, grace).await;
    }

    /// Ends everybody's.
    pub async fn end_all(&self, grace: Duration) {
        let all = std::mem::take(&mut *self.all());
        end(all.into_values().flatten().collect(), grace).await;
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Tenant, Vec<Process>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All at once: each waits for itself alone.
async fn end(processes: Vec<Process>, grace: Duration) {
    let asked: Vec<_> = processes.iter().filter(|process| process.is_alive()).collect();
    let deadline = kit::clock::now() + grace;
    for process in &asked {
        process.terminate();
    }
    for process in asked {
        process.end(deadline.saturating_duration_since(kit::clock::now())).await;
    }
}
