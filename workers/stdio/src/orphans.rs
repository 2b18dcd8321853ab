//! What a keeper that was killed by force leaves: it becomes this process's own, and is ended.
//!
//! The system hands orphans to the nearest forebear that asks for them, which is a keeper while it lives and then whoever
//! started the keeper. Children of this process are so of two kinds, those that a bridge started and orphans, and are
//! told apart by a list of the first. A process has one set of children, so the list is the process's own.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;
use tokio::process::Child;

/// Those that a bridge started and that have not been seen to end.
static STARTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Starts a child that nobody takes for an orphan.
pub(crate) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Option<Pid>)> {
    // An orphan is looked for under the same lock, so a child is in the list before anybody sees it.
    let mut started = started();
    let child = spawn()?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    started.extend(pid);
    Ok((child, pid))
}

/// A child that was started has ended.
pub(crate) fn ended(child: Pid) {
    let mut started = started();
    if let Some(at) = started.iter().position(|known| *known == child) {
        started.swap_remove(at);
    }
}

fn started() -> MutexGuard<'static, Vec<Pid>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
pub use adoption::adopt_orphans;
#[cfg(target_os = "linux")]
pub(crate) use adoption::sweep;

#[cfg(target_os = "linux")]
mod adoption {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

    use crate::keeper::{MOST_ROUNDS, ROUND, children};

    /// Makes this process the forebear to whom a killed keeper's orphans come, to be ended. A child that no bridge has
    /// started is taken for one of them from then on.
    ///
    /// # Errors
    /// When the system has no such thing.
    pub fn adopt_orphans() -> io::Result<()> {
        set_child_subreaper(Some(getpid()))?;
        ADOPTS.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Kills the orphans, and theirs as they become ours, until there are none; blocking.
    pub(crate) fn sweep() {
        if !ADOPTS.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..MOST_ROUNDS {
            let orphans: Vec<_> = {
                let started = super::started();
                children().into_iter().filter(|child| !started.contains(child)).collect()
            };
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                let _ = kill_process(orphan, Signal::KILL);
                // One that is ending still is seen again in the next round.
                let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            }
            std::thread::sleep(ROUND);
        }
        tracing::error!("processes that a killed keeper left could not be ended");
    }

    static ADOPTS: AtomicBool = AtomicBool::new(false);
}
