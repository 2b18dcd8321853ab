//! What a running tenant has of the host, and the way back.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::Tenant;
use tokio::sync::watch;

use super::disk::Disk;
use super::layout::{Hold, step};
use crate::backend::{BackendError, Usage};

#[derive(Debug)]
pub(super) struct Kept {
    /// Let go of before the hold, so that who has the hold finds the disk free.
    pub(super) disk: Option<Disk>,
    pub(super) hold: Hold,
}

/// Keeps it until the last process is gone.
pub(super) struct Keeping {
    kept: Mutex<Option<Kept>>,
    /// Becomes true when nothing is kept any more.
    gone: watch::Sender<bool>,
}

impl Keeping {
    pub(super) fn new(kept: Option<Kept>) -> Self {
        Self { kept: Mutex::new(kept), gone: watch::Sender::new(false) }
    }

    /// Lets go of it, once. What the disk still has in memory is written out, which may take longer than anybody who only
    /// wants the processes dead should wait. Blocks.
    pub(super) fn let_go(&self, tenant: &Tenant) {
        let kept = self.kept().take();
        if let Some(Kept { disk, hold }) = kept {
            if let Some(Err(fault)) = disk.map(Disk::close) {
                tracing::warn!(%tenant, %fault, "a dead tenant's disk is not free");
            }
            drop(hold);
            self.gone.send_replace(true);
        }
    }

    /// Waits until it is let go of.
    pub(super) async fn gone(&self, tenant: &Tenant) -> Result<(), BackendError> {
        let mut gone = self.gone.subscribe();
        match tokio::time::timeout(PATIENCE, gone.wait_for(|gone| *gone)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(step(format!("let go of the disk of {tenant}"))(io::ErrorKind::TimedOut.into())),
        }
    }

    /// What the disk holds, if there is one.
    pub(super) fn usage(&self) -> Option<io::Result<Usage>> {
        self.kept().as_ref()?.disk.as_ref().map(Disk::usage)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longer than a disk may take to be let go of.
const PATIENCE: Duration = Duration::from_secs(90);
