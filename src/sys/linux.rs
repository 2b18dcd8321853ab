//! Linux.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

/// The file that this process runs from, whatever lies at its path by now.
#[derive(Debug)]
pub(crate) struct Itself(File);

impl Itself {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self(File::open("/proc/self/exe")?))
    }

    /// A name by which this process can start it.
    pub(crate) fn path(&self) -> PathBuf {
        by_descriptor(&self.0)
    }
}

/// Names this process in the system's lists, where it bears the name of the descriptor that it was started from.
pub(crate) fn set_name(name: &CStr) {
    // A process without a good name still works.
    let _ = rustix::thread::set_name(name);
}

/// Gives up every right that an ordinary user has not, and what others of the same user could do to this process. Called
/// before a second thread exists, which would keep them.
pub(crate) fn confine() -> io::Result<()> {
    set_no_new_privs(true)?;
    // Nobody of the same uid reads the keys out of this process, and no core file has them.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    if !capabilities(None)?.effective.is_empty() {
        return Err(io::Error::other("capabilities are left"));
    }
    Ok(())
}

/// A short path to a folder that is open.
pub(crate) fn through(folder: &File) -> Option<PathBuf> {
    Some(by_descriptor(folder))
}

fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
