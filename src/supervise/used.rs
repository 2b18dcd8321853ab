//! Writing down which credentials the edge says were used.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Supervisor;
use crate::identity::CredentialId;
use crate::identity::store::last_used::LastUsed;

/// One writing at a time: an edge that says more meanwhile says it for nothing.
#[derive(Clone, Debug)]
pub(super) struct Noting(Arc<Semaphore>);

impl Default for Noting {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Supervisor {
    pub(super) fn used(&self, ids: Vec<CredentialId>, hour: u64) {
        let (Some(state), Ok(turn)) = (&self.plan.last_used, Arc::clone(&self.noting.0).try_acquire_owned()) else {
            return;
        };
        let used = LastUsed::in_state(state);
        self.tasks.start(async move {
            let noted = tokio::task::spawn_blocking(move || used.note(ids, hour)).await;
            if let Ok(Err(fault)) = noted {
                tracing::warn!(fault = kit::chain(&fault), "when credentials were used last cannot be written down");
            }
            drop(turn);
        });
    }
}
