//! The sandboxes of a state, opened in this process.

use std::path::{Path, PathBuf};

use sandbox::backend::Kind;
use sandbox::{OpenError, Sandbox};

/// Opens the sandboxes of a folder with the settings that lie in it, isolated by `kind`.
///
/// # Errors
/// When the settings cannot be used, or tenants cannot be isolated here.
pub async fn open(folder: &Path, kind: Kind) -> Result<Sandbox, OpenError> {
    let config = sandbox::Config::load(folder.to_owned(), program(), vec!["__sandbox-init".to_owned()])?;
    Sandbox::open(config.with(kind)).await
}

/// This program, as a child finds it.
fn program() -> PathBuf {
    if std::env::consts::OS == "linux" {
        // By this name a process finds the very file it runs from, also after an upgrade on disk.
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_else(|_unknown| PathBuf::from("playground"))
}
