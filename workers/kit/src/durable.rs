//! Small files that are replaced whole: after a crash there is the old content or the new one.
//!
//! ```text
//! lock a draft beside it -> write -> fsync -> rename -> fsync the folder
//! ```
//!
//! The draft is `NAME.new`. Writers of one file wait for each other by a lock on it, which ends with its holder, so what a
//! killed writer left is seen as such and goes with the next replacement. The folder is taken to be the writer's own: one
//! in which somebody else may rename needs more care than this.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Gives a file this content and this mode; once it returns, they outlive a loss of power. Blocks.
///
/// # Errors
/// When a step fails. The file is then as it was, unless only the folder could not be synced.
pub fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    let draft_path = path.with_added_extension("new");
    let draft = draft(&draft_path, mode)?;
    let written = fill(&draft, mode, content).and_then(|()| std::fs::rename(&draft_path, path));
    if let Err(fault) = written {
        // It is ours by the lock. What cannot be removed is taken for a killed writer's by the next.
        let _ = std::fs::remove_file(&draft_path);
        return Err(fault);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// A new and empty file of ours, locked, at a name where nobody else's is.
fn draft(path: &Path, mode: u32) -> io::Result<File> {
    loop {
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
            Ok(draft) => {
                draft.lock()?;
                // In between somebody may have taken it for a leftover.
                if is_at(&draft, path)? {
                    return Ok(draft);
                }
            }
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => sweep(path)?,
            Err(fault) => return Err(fault),
        }
    }
}

/// Removes what a killed writer left, and waits for one that is alive.
fn sweep(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is in the way and not a file", path.display()),
            ));
        }
        Ok(_) => {}
        Err(fault) => return or_gone(Err(fault)),
    }
    match OpenOptions::new().write(true).open(path) {
        Ok(leftover) => {
            leftover.lock()?;
            if is_at(&leftover, path)? { or_gone(std::fs::remove_file(path)) } else { Ok(()) }
        }
        fault => or_gone(fault.map(drop)),
    }
}

fn fill(mut draft: &File, mode: u32, content: &[u8]) -> io::Result<()> {
    // The mask of the process is not the caller's wish.
    draft.set_permissions(Permissions::from_mode(mode))?;
    draft.write_all(content)?;
    draft.sync_all()
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn or_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
