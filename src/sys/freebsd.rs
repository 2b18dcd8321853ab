//! FreeBSD, where an ordinary user holds no privilege that could be given up.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

pub(crate) use super::by_path::{Itself, set_name, through};

/// Forbids others of the same user to trace this process, and core files of it.
pub(crate) fn confine() -> io::Result<()> {
    Ok(set_dumpable_behavior(None, DumpableBehavior::NotDumpable)?)
}
