//! A reaper as procctl(2) knows it, by which timeout(1) ends what it has started. Orphans come to it from within a jail as
//! well.
//!
//! The kernel kills and counts all descendants itself, but for those below a descendant that is a reaper too; they come to
//! this one when that one has ended, so asking again until the count is none finds everybody.

use std::io;

use rustix::io::Errno;
use rustix::process::{Signal, get_reaper_status, reaper_kill, set_reaper_status};

use super::Reaper;

pub(crate) const IS_HERE: bool = true;

pub(crate) struct Own(());

impl Reaper for Own {
    fn acquire() -> io::Result<Self> {
        match set_reaper_status(true) {
            // It is one already.
            Ok(()) | Err(Errno::BUSY) => Ok(Self(())),
            Err(fault) => Err(fault.into()),
        }
    }

    fn kill_all(&mut self) -> io::Result<()> {
        match reaper_kill(None, Signal::KILL, false, None) {
            // Nobody is left; or not one of those that are may be killed by us, which the count tells.
            Ok(_) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    fn count(&mut self) -> io::Result<usize> {
        Ok(get_reaper_status(None)?.descendants)
    }
}
