//! The commands of a running tenant, from their registration until nothing of them is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use super::{Answer, Live};
use crate::backend::linux::cgroup::{CommandCgroup, TenantCgroup};
use crate::backend::linux::wire::Status;
use crate::backend::{BackendError, Exit};

/// A command as the first process knows it.
pub(in crate::backend::linux) struct Job {
    pub(in crate::backend::linux) id: u64,
    /// Absent where the command has a pid namespace instead.
    pub(in crate::backend::linux) cgroup: Option<CommandCgroup>,
    pub(in crate::backend::linux) exit: watch::Sender<Option<Exit>>,
    /// Set when nothing of a command with a pid namespace is left.
    pub(in crate::backend::linux) gone: watch::Sender<bool>,
    /// Whether it was started so that it can write nothing.
    pub(in crate::backend::linux) full: bool,
    /// Whether we ended it ourselves because there were too many files.
    pub(in crate::backend::linux) over_quota: AtomicBool,
    /// Whether we ended it ourselves, so that the kernel did not.
    pub(in crate::backend::linux) killed: AtomicBool,
    /// How many processes of the tenant the kernel had ended for want of memory when this command began.
    lost_before: u64,
    /// How many it had ended of this command when the shell ended.
    lost: OnceLock<u64>,
}

impl Live {
    /// Registers a command before it is ordered, so that no report of it can come too early.
    pub(in crate::backend::linux) fn register(
        &self,
        id: u64,
        cgroup: Option<CommandCgroup>,
        full: bool,
    ) -> Result<Arc<Job>, BackendError> {
        let lost_before = self.cgroup.as_ref().map_or(0, TenantCgroup::ended_for_memory);
        let job = Arc::new(Job {
            id,
            cgroup,
            exit: watch::Sender::new(None),
            gone: watch::Sender::new(false),
            full,
            over_quota: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            lost_before,
            lost: OnceLock::new(),
        });
        let mut table = self.table();
        if table.closed {
            return Err(BackendError::SandboxEnded(self.tenant.clone()));
        }
        table.jobs.insert(id, Arc::clone(&job));
        Ok(job)
    }

    /// Forgets a command that was not started.
    pub(in crate::backend::linux) fn forget(&self, id: u64) {
        let job = self.table().jobs.remove(&id);
        if let Some(cgroup) = job.as_ref().and_then(|job| job.cgroup.as_ref()) {
            cgroup.remove();
        }
    }

    /// Whether a command runs, or left something that does.
    pub(in crate::backend::linux) fn has_processes(&self) -> bool {
        let table = self.table();
        let populated = |job: &Arc<Job>| job.cgroup.as_ref().is_some_and(CommandCgroup::is_populated);
        !table.jobs.is_empty() || table.leftovers.iter().any(populated)
    }

    pub(super) fn ended(&self, id: u64, status: Status, last: bool) {
        // A command that ends before it could say that it started was ended at once.
        self.answer(id, Answer::Started(None));
        let job = {
            let mut table = self.table();
            let Some(job) = table.jobs.get(&id).map(Arc::clone) else { return };
            if job.cgroup.is_some() {
                table.jobs.remove(&id);
                // At one instant, so that what it left is never unseen.
                table.leftovers.push(Arc::clone(&job));
            }
            job
        };
        if last {
            job.gone.send_replace(true);
        }
        // Now, since its group may be gone in a moment.
        let _ = job.lost.set(self.lost_to_memory(&job));
        job.end(self.exit(&job, status));
        self.tidy();
        if let Some(quota) = &self.quota {
            quota.ask();
        }
    }

    fn exit(&self, job: &Job, status: Status) -> Exit {
        if job.over_quota.load(Ordering::Relaxed) {
            return Exit::OverQuota;
        }
        // A shell whose program was ended for want of memory says so with the code that shells use for its signal.
        let by_kill = matches!(status, Status::Signal(libc::SIGKILL) | Status::Code(BY_KILL));
        if by_kill && !job.killed.load(Ordering::Relaxed) && self.lost_to_memory(job) > 0 {
            return Exit::OutOfMemory;
        }
        match status {
            Status::Code(code) => Exit::Code(code),
            Status::Signal(signal) => Exit::Signal(signal),
        }
    }

    /// How many processes of a command the kernel ended for want of memory, up to the end of its shell.
    pub(in crate::backend::linux) fn lost_to_memory(&self, job: &Job) -> u64 {
        let counted = || {
            let own = job.cgroup.as_ref().and_then(CommandCgroup::ended_for_memory);
            let all = || self.cgroup.as_ref().map_or(0, TenantCgroup::ended_for_memory);
            own.unwrap_or_else(|| all().saturating_sub(job.lost_before))
        };
        job.lost.get().copied().unwrap_or_else(counted)
    }

    /// Commands that may have processes: those whose shell runs, and those that left something.
    pub(in crate::backend::linux) fn running(&self) -> Vec<Arc<Job>> {
        let table = self.table();
        table.jobs.values().chain(&table.leftovers).map(Arc::clone).collect()
    }

    pub(in crate::backend::linux) fn is_busy(&self) -> bool {
        self.tidy();
        let table = self.table();
        !table.jobs.is_empty() || !table.leftovers.is_empty()
    }

    /// Removes the groups of commands of which nothing is left.
    fn tidy(&self) {
        let mut table = self.table();
        table.leftovers.retain(|job| job.cgroup.as_ref().is_some_and(|cgroup| !cgroup.remove()));
    }
}

impl Job {
    /// The first end that is told counts.
    pub(super) fn end(&self, exit: Exit) {
        self.exit.send_if_modified(|known| {
            let first = known.is_none();
            if first {
                *known = Some(exit);
            }
            first
        });
    }
}

/// 128 and the number of the signal.
const BY_KILL: i32 = 137;
