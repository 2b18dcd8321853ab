//! Systems whose files are known by their paths alone.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The path that this process was started from. After an upgrade on disk it leads to the new program.
#[derive(Debug)]
pub(crate) struct Itself(PathBuf);

impl Itself {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self(std::env::current_exe()?))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

/// It bears the program's name already.
pub(crate) fn set_name(_name: &CStr) {}

/// There is no shorter path.
pub(crate) fn through(_folder: &File) -> Option<PathBuf> {
    None
}
