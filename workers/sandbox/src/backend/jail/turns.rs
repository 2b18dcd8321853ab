//! Whose turn it is to work on a tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::{Semaphore, oneshot};

use super::fault::JailFault;
use crate::backend::BackendError;

/// Work on each tenant, one piece at a time.
pub(super) struct Turns {
    each: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
    tasks: Tasks,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { each: Mutex::default(), tasks: Tasks::new() }
    }

    /// Does work on a tenant, to its end even if nobody waits for it.
    pub(super) async fn take<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        doing: &'static str,
        work: impl Future<Output = Result<T, JailFault>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (turn, doing) = (self.of(tenant), format!("{doing} of {tenant}"));
        let (done, result) = oneshot::channel();
        self.tasks.start(async move {
            // The semaphore is never closed.
            let Ok(_turn) = turn.acquire_owned().await else { return };
            let _ = done.send(work.await.map_err(|fault| fault.during(doing)));
        });
        result.await.map_err(|_closed| BackendError::ShuttingDown)?
    }

    /// Waits for all that was begun.
    pub(super) async fn drained(&self) {
        self.tasks.drained().await;
    }

    fn of(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(each.entry(tenant.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}
