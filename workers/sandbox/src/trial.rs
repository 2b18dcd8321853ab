//! A worker beside the worker, for trying what this host can do: its tenants live in a folder of their own, with user ids
//! that no other tenant has, and are gone with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::Tenant;
use tokio::sync::OwnedSemaphorePermit;

use crate::backend::BackendError;
use crate::{Config, OpenError, Sandbox};

/// Such a worker, open. It has room for one tenant at a time, of which nothing stays.
pub struct Trial {
    sandbox: Sandbox,
    folder: PathBuf,
    _alone: OwnedSemaphorePermit,
}

impl Sandbox {
    /// Opens one, after another that is open has ended. What one that was killed left goes first.
    ///
    /// # Errors
    /// When the folder cannot be made, or the host stands in the way.
    pub async fn trial(&self, tenant: &Tenant) -> Result<Trial, OpenError> {
        let alone = Arc::clone(&self.trying).acquire_owned().await;
        // It is never closed.
        let alone = alone.map_err(|_closed| OpenError::Backend(BackendError::ShuttingDown))?;
        let mut config = Config::clone(&self.config);
        let folder = config.backend.state.join(FOLDER);
        config.backend.state.clone_from(&folder);
        if folder.exists() {
            let left = Self::open(config.clone()).await?;
            end(&left, &folder, tenant).await.map_err(OpenError::Backend)?;
        }
        begin(&folder).map_err(OpenError::Backend)?;
        let sandbox = Self::open(config).await?;
        Ok(Trial { sandbox, folder, _alone: alone })
    }
}

impl Trial {
    /// The worker to try with.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Removes its tenant and itself.
    ///
    /// # Errors
    /// When something of it stays; the next one goes on with that.
    pub async fn end(self, tenant: &Tenant) -> Result<(), BackendError> {
        end(&self.sandbox, &self.folder, tenant).await
    }
}

async fn end(sandbox: &Sandbox, folder: &Path, tenant: &Tenant) -> Result<(), BackendError> {
    match sandbox.destroy(tenant, true).await {
        Ok(()) | Err(BackendError::NotProvisioned(_)) => {}
        Err(fault) => return Err(fault),
    }
    sandbox.shutdown().await?;
    match fs::remove_dir_all(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => {
            Err(BackendError::Step { step: format!("remove {}", folder.display()), source: fault })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn begin(folder: &Path) -> Result<(), BackendError> {
    crate::backend::linux::set_aside(folder)
}

/// No worker opens on this host.
#[cfg(not(target_os = "linux"))]
fn begin(_folder: &Path) -> Result<(), BackendError> {
    Ok(())
}

/// Beside the tenants' own folders, and never one of them.
const FOLDER: &str = "trial";
