//! What is refused where a `playground.toml` says how to serve, and only warned of elsewhere.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kit::Tenant;

use super::words::Native;
use crate::config::{Config, Upstreams};
use crate::identity::Catalogue;
use crate::identity::store::Ledger;
use crate::store::Loose;
use crate::worker::manifest;

#[derive(Debug, thiserror::Error)]
pub enum StrictFault {
    #[error("{} has mode {mode:04o}: others can change who is served by what; run: chmod go-w {}", path.display(), path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} has mode {mode:04o}: others can read or change a worker's token; run: chmod 600 {}", path.display(), path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "tenant `{tenant}` has a native worker and, in {}, credentials for the sandbox; take the worker out of the configuration, or revoke those credentials with: playground token revoke ID",
        store.display()
    )]
    Both { tenant: Tenant, store: PathBuf },
}

impl StrictFault {
    /// The file that it is about.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Writable { path, .. } | Self::Open { path, .. } => Some(path),
            Self::Both { .. } => None,
        }
    }
}

/// Every fault of the modes of the manifest, of the token files, and of a `playground.toml` that leads to them.
pub(super) fn loose(config: &Config) -> Vec<StrictFault> {
    let manifest = config.upstreams.manifest();
    let writable = [config.file.as_ref(), manifest].into_iter().flatten().filter_map(|path| {
        let mode = mode(path)?;
        (mode & 0o022 != 0).then(|| StrictFault::Writable { path: path.clone(), mode })
    });
    let open = token_files(config).into_iter().filter_map(|path| {
        let mode = mode(&path)?;
        // A group may be let in on purpose, to read; everybody never is.
        (mode & 0o027 != 0).then_some(StrictFault::Open { path, mode })
    });
    writable.chain(open).collect()
}

/// Tenants who would be served by their own worker or by the sandbox as their credential says: that is nobody's wish.
pub(super) fn both(config: &Config, native: &[Native], loose: Loose) -> Vec<StrictFault> {
    if config.file.is_none() || matches!(config.upstreams, Upstreams::Native { .. }) {
        return Vec::new();
    }
    // A store that cannot be read is told by whoever serves from it.
    let listed = Ledger::at(config.credentials.clone(), loose).list().unwrap_or_default();
    let is_sandboxed =
        |tenant: &Tenant| listed.iter().any(|it| it.catalogue == Some(Catalogue::Sandbox) && it.tenant == *tenant);
    let fault = |tenant: &Tenant| StrictFault::Both { tenant: tenant.clone(), store: config.credentials.clone() };
    native.iter().map(|native| &native.tenant).filter(|tenant| is_sandboxed(tenant)).map(fault).collect()
}

/// The token files of all workers, as far as they can be told.
pub(super) fn token_files(config: &Config) -> Vec<PathBuf> {
    let mut files: Vec<_> = config.workers.iter().map(|worker| worker.entry.token_file.clone()).collect();
    files.extend(config.upstreams.manifest().into_iter().flat_map(|manifest| manifest::token_files(manifest)));
    if let Upstreams::Elsewhere { token_file, .. } = &config.upstreams {
        files.push(token_file.clone());
    }
    files
}

/// Nothing of what is not there or no file of bytes: those are faults of their own.
fn mode(path: &Path) -> Option<u32> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then(|| found.mode() & 0o7777)
}
