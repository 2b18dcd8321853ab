//! Systems on which nobody can answer for its descendants: macOS has no such thing.

use std::io;

use super::Reaper;

pub(crate) const IS_HERE: bool = false;

/// There is none.
pub(crate) enum Own {}

impl Reaper for Own {
    fn acquire() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system hands orphans to nobody but its first process"))
    }

    fn kill_all(&mut self) -> io::Result<()> {
        match *self {}
    }

    fn count(&mut self) -> io::Result<usize> {
        match *self {}
    }
}
