//! A worker beside the worker, for trying what this host can do: its two tenants live in a folder of their own, with user
//! ids that no other tenant has, and are gone with it. Where a backend keeps tenants elsewhere, they are the two of
//! their names there, and nothing is tried where somebody has one of those already.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::Tenant;
use tokio::sync::OwnedSemaphorePermit;

use crate::backend::{BackendError, Found, Kind};
use crate::{Config, OpenError, Sandbox};

/// Such a worker, open, of which nothing stays.
pub struct Trial {
    sandbox: Sandbox,
    tenants: [Tenant; 2],
    folder: PathBuf,
    _alone: OwnedSemaphorePermit,
}

impl Sandbox {
    /// Opens one, after another that is open has ended. What one that was killed left goes first.
    ///
    /// # Errors
    /// When the folder cannot be made, the host stands in the way, or a tenant has a name that is needed for it.
    pub async fn trial(&self) -> Result<Trial, OpenError> {
        let alone = Arc::clone(&self.trying).acquire_owned().await;
        // It is never closed.
        let alone = alone.map_err(|_closed| OpenError::Backend(BackendError::ShuttingDown))?;
        let tenants = tenants().map_err(OpenError::Backend)?;
        let mut config = Config::clone(&self.config);
        let folder = config.backend.state.join(FOLDER);
        config.backend.state.clone_from(&folder);
        config.backend.kind = config.backend.kind.aside();
        if folder.exists() {
            let left = Self::open(config.clone()).await?;
            end(&left, &folder, &tenants).await.map_err(OpenError::Backend)?;
        }
        begin(&folder).map_err(OpenError::Backend)?;
        let sandbox = Self::open(config).await?;
        for tenant in &tenants {
            let found = sandbox.look(tenant).await.map_err(OpenError::Backend)?;
            // Elsewhere the names are a trial's alone, and a pile that it could not remove is its own.
            let is_somebodys =
                if sandbox.config.backend.kind == Kind::Linux { found != Found::default() } else { found.sandbox };
            if is_somebodys {
                let step = format!(
                    "try with a tenant {tenant}: there is one already; remove it with its pile if it is a trial's"
                );
                return Err(OpenError::Backend(BackendError::Step {
                    step,
                    source: io::ErrorKind::AlreadyExists.into(),
                }));
            }
        }
        Ok(Trial { sandbox, tenants, folder, _alone: alone })
    }
}

impl Trial {
    /// The worker to try with.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The names that its tenants have once they are made, which is the caller's to do.
    #[must_use]
    pub fn tenants(&self) -> &[Tenant; 2] {
        &self.tenants
    }

    /// Removes its tenants and itself.
    ///
    /// # Errors
    /// When something of it stays; the next one goes on with that.
    pub async fn end(self) -> Result<(), BackendError> {
        end(&self.sandbox, &self.folder, &self.tenants).await
    }
}

async fn end(sandbox: &Sandbox, folder: &Path, tenants: &[Tenant; 2]) -> Result<(), BackendError> {
    // A hardened host of jails lets nobody remove a pile; the next trial finds it again.
    let delete_pile = sandbox.config.backend.kind == Kind::Linux;
    for tenant in tenants {
        match sandbox.destroy(tenant, delete_pile).await {
            Ok(()) | Err(BackendError::NotProvisioned(_)) => {}
            Err(fault) => return Err(fault),
        }
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

fn tenants() -> Result<[Tenant; 2], BackendError> {
    let name = |name: &'static str| {
        Tenant::parse_new(name).map_err(|fault| BackendError::Step {
            step: format!("name a tenant {name}"),
            source: io::Error::other(fault),
        })
    };
    Ok([name("doctor")?, name("doctor-neighbour")?])
}

/// Beside the tenants' own folders, and never one of them.
const FOLDER: &str = "trial";
