//! The end of everything that one process has started, as the systems offer it: to whoever says so come the orphans among
//! its descendants, so that nobody leaves its tree by leaving its parent, its group or its session.
//!
//! ```text
//! Linux     PR_SET_CHILD_SUBREAPER   children, as /proc lists them; wait(2) says when there is none
//! FreeBSD   procctl(2) PROC_REAP_*   all descendants at once, killed and counted by the kernel
//! others    nothing                  acquire refuses, and so nothing is started
//! ```
//!
//! What is done with it is [`crate::reap`], the same everywhere.

#[cfg_attr(target_os = "linux", path = "reaper/linux.rs")]
#[cfg_attr(target_os = "freebsd", path = "reaper/freebsd.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "freebsd")), path = "reaper/absent.rs")]
mod own;

use std::io;

use rustix::process::{Pid, WaitOptions, wait};

pub(crate) use own::{IS_HERE, Own};

/// What a system gives to the process that answers for all its descendants.
pub(crate) trait Reaper: Sized {
    /// Makes this process such a one, for the rest of its life.
    fn acquire() -> io::Result<Self>;

    /// Kills every descendant that the system shows now, and no other process. One that is ending, and one that is not
    /// ours to kill, are no faults: they are counted.
    fn kill_all(&mut self) -> io::Result<()>;

    /// How many descendants are left, those that have ended and were not collected included. None is the kernel's word;
    /// any other number may be too low.
    fn count(&mut self) -> io::Result<usize>;

    /// Collects one child that has ended, be it ours or an orphan that came to us.
    fn reap(&mut self) -> io::Result<Option<Reaped>> {
        match wait(WaitOptions::NOHANG) {
            Ok(ended) => Ok(ended.map(|(pid, status)| Reaped {
                pid,
                code: status.exit_status(),
                signal: status.terminating_signal(),
            })),
            Err(rustix::io::Errno::CHILD) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

/// A child that has ended and is gone from the table of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub(crate) pid: Pid,
    pub(crate) code: Option<i32>,
    /// What ended it, if it did not end by itself.
    pub(crate) signal: Option<i32>,
}
