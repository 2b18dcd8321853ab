//! What a verb did, put on record behind it.
//!
//! A change that was made stands, also where it cannot be recorded: that is told, as a revocation must be possible on a
//! full disk. There the ballast of the folder makes room.

use std::path::Path;

use kit::ballast::{self, Ballast};

use super::say;
use crate::audit::acts::{Act, Acts};

/// Records an act in the folder of what it has changed; blocking.
pub(super) fn record(folder: &Path, act: &Act) {
    let acts = Acts::of(folder);
    if let Err(fault) = Ballast::of(folder).write(|| acts.record(act), ballast::is_full) {
        say::insist(&format!("warning: this was done, but it is not on record: {}: {fault}", acts.path().display()));
    }
}

/// The same for a file that has been changed.
pub(super) fn record_beside(file: &Path, act: &Act) {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    record(folder.unwrap_or(Path::new(".")), act);
}
