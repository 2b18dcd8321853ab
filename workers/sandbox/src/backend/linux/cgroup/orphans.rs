//! Groups that a killed service left and that nobody will come back to.
//!
//! A service's folder is named after its state folder, and remembers that folder's path. Once the path no longer leads
//! there, no service can be started that would clear up; any other service of this host does then. Only what has no
//! process is removed, and nothing is ever ended here: whatever lives is somebody's.
//!
//! Device and number alone would not tell one state from another: a file system gives the number of a folder that is
//! gone to the next, and a disk that is made anew begins with the same ones. The groups of the new state would then be
//! taken for those of the old by whoever is just removing them. When a folder was made never comes again.

use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{XattrFlags, getxattr, setxattr};

/// Names of all services' folders begin so.
pub(in crate::backend::linux) const SERVICE: &str = "playground-";

/// A name for a service's groups that no other state folder of this host shares, or will.
pub(in crate::backend::linux) fn name(state: &fs::Metadata) -> String {
    let place = format!("{SERVICE}{:x}-{:x}", state.dev(), state.ino());
    // Some file systems do not say when.
    let made = state.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    made.map_or_else(|| place.clone(), |made| format!("{place}-{:x}", made.as_nanos()))
}

/// Remembers whose a service's folder is. Where the kernel has no such mark, nobody will ever clear up after the state.
pub(super) fn mark(folder: &Path, state: &Path) {
    let _ = setxattr(folder, MARK, state.as_os_str().as_bytes(), XattrFlags::empty());
}

/// Removes the folders beside this service's own whose states are gone, and the trials of killed processes in its own.
pub(super) fn sweep(place: &Path, own: &Path) {
    for folder in folders(place) {
        if folder != own && is_orphan(&folder) && is_empty(&folder) {
            remove(&folder);
        }
    }
    for folder in folders(own) {
        if tried_by(&folder).is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&folder);
        }
    }
}

/// The number of the process whose trial a folder is.
fn tried_by(folder: &Path) -> Option<&str> {
    let process = folder.file_name()?.to_str()?.strip_prefix(TRIAL)?;
    process.bytes().all(|byte| byte.is_ascii_digit()).then_some(process)
}

/// What a service tries out in a folder of its own.
pub(super) fn trial(folder: &Path) -> PathBuf {
    folder.join(format!("{TRIAL}{}", std::process::id()))
}

fn is_orphan(folder: &Path) -> bool {
    let Some(found) = folder.file_name().and_then(|found| found.to_str()).filter(|found| found.starts_with(SERVICE))
    else {
        return false;
    };
    let Some(state) = marked(folder) else { return false };
    match state.metadata() {
        Ok(state) => name(&state) != found,
        // One that cannot be looked at may well be there.
        Err(fault) => matches!(fault.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)),
    }
}

fn marked(folder: &Path) -> Option<PathBuf> {
    let mut path = vec![0; LONGEST_PATH];
    let length = getxattr(folder, MARK, &mut path[..]).ok()?;
    path.truncate(length);
    (length > 0).then(|| std::ffi::OsString::from_vec(path).into())
}

/// Whether no process is in a folder or below it. What cannot be read is not empty.
fn is_empty(folder: &Path) -> bool {
    let none = fs::read_to_string(folder.join("cgroup.procs")).is_ok_and(|processes| processes.trim().is_empty());
    none && folders(folder).iter().all(|below| is_empty(below))
}

/// From the inside out; the kernel refuses wherever a process has come meanwhile.
fn remove(folder: &Path) {
    for below in folders(folder) {
        remove(&below);
    }
    let _ = fs::remove_dir(folder);
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

const MARK: &str = "user.playground.state";

const TRIAL: &str = "try-";

/// As long as the kernel lets a path be.
const LONGEST_PATH: usize = 4096;
