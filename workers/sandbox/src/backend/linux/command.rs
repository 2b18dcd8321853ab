//! One command of a running tenant: its end, and its certain death.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::cgroup::CommandCgroup;
use super::live::{Job, Live};
use super::wire::Order;
use crate::backend::{Command, ControlLost, Exit, Full, Killed, Pending};

pub(super) struct LinuxCommand {
    pub(super) live: Arc<Live>,
    pub(super) job: Arc<Job>,
}

impl Command for LinuxCommand {
    fn ended(&self) -> Pending<'_, Exit> {
        Box::pin(async move {
            let mut exit = self.job.exit.subscribe();
            let ended = exit.wait_for(Option::is_some).await;
            // The sender lives in the job that we hold, so the wait cannot fail.
            ended.ok().and_then(|exit| exit.clone()).unwrap_or(Exit::SandboxEnded)
        })
    }

    fn kill(&self) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move {
            self.job.killed.store(true, Ordering::Relaxed);
            if tokio::time::timeout(self.live.deadline, self.end()).await.is_ok() {
                return Ok(Killed::Command);
            }
            tracing::error!(tenant = %self.live.tenant, "a command does not die; the whole sandbox is ended");
            self.live.end().await.map(|()| Killed::Sandbox)
        })
    }

    fn is_populated(&self) -> bool {
        if self.live.is_dead() {
            return false;
        }
        match &self.job.cgroup {
            Some(cgroup) => cgroup.is_populated(),
            None => !*self.job.gone.borrow(),
        }
    }

    fn population(&self) -> Option<usize> {
        self.job.cgroup.as_ref().and_then(CommandCgroup::population)
    }

    fn lost_to_memory(&self) -> u64 {
        self.live.lost_to_memory(&self.job)
    }

    fn full(&self) -> Pending<'_, Option<Full>> {
        Box::pin(async move {
            let quota = self.live.quota.as_ref().filter(|_| self.job.full)?;
            quota.full().await
        })
    }
}

impl LinuxCommand {
    /// Ends the tree; does not return before it is gone, so the caller brings the deadline.
    async fn end(&self) {
        match &self.job.cgroup {
            Some(cgroup) => {
                let mut pause = Duration::from_micros(200);
                while !self.live.is_dead() {
                    cgroup.kill();
                    if !cgroup.is_populated() {
                        break;
                    }
                    if pause == LONGEST_PAUSE {
                        cgroup.kill_each();
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            None => {
                let mut gone = self.job.gone.subscribe();
                // An order that cannot be given leaves the wait to end with the sandbox.
                let _ = self.live.order(&Order::Kill { id: self.job.id }, &[]).await;
                let _ = gone.wait_for(|gone| *gone).await;
            }
        }
        // The shell is dead by now; its first process tells so in a moment.
        let _ = self.job.exit.subscribe().wait_for(Option::is_some).await;
        if let Some(cgroup) = &self.job.cgroup {
            cgroup.remove();
        }
    }
}

/// Between two looks at whether a tree is gone. When it comes to this, the kernel has had its time.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
