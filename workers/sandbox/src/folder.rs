//! Folders that are this user's alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Makes a folder of this user's own, that nobody else can write to, with those above it; one that is there has to be such
/// a one.
///
/// # Errors
/// When it is somebody else's, or cannot be made.
pub(crate) fn own(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).recursive(false).create(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().mode(0o700).recursive(true).create(path)?;
        }
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(path)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !is_own || found.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other("it is not a folder of this user's alone"));
    }
    Ok(())
}

/// Makes names in a folder outlive a loss of power.
///
/// # Errors
/// When the disk does not take them.
pub(crate) fn settle(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// What is gone already is as if it were removed.
pub(crate) fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
