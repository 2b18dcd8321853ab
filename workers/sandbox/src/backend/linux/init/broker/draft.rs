//! The name under which new content stands for an instant before it replaces the old.
//!
//! It holds the number of its writer, so that what stands under it while no such process lives was left by one that was
//! killed with the whole sandbox. The next write into the same folder removes it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, unlinkat};
use rustix::process::{Pid, test_kill_process};

/// The name for this process's own draft, of which none is left in the folder.
pub(super) fn name(folder: &OwnedFd) -> String {
    let own = format!("{PREFIX}{}", std::process::id());
    // A folder that cannot be read gets its draft all the same.
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let Some(writer) = entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let Some(writer) = writer.parse().ok().and_then(Pid::from_raw) else { continue };
        let is_own = u32::try_from(writer.as_raw_nonzero().get()).is_ok_and(|writer| writer == std::process::id());
        if is_own || test_kill_process(writer) == Err(rustix::io::Errno::SRCH) {
            let _ = unlinkat(folder, entry.file_name(), AtFlags::empty());
        }
    }
    own
}

/// Nobody else's files are called so.
const PREFIX: &str = ".playground-draft.";
