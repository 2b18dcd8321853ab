//! A tenant that runs: its first process, the conversation with it, and its commands.

mod commands;
mod conversation;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::{Tenant, tasks::Tasks};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};

use super::cgroup::TenantCgroup;
use super::kept::{Keeping, Kept};
use super::launch::{ALL_CHILDREN, Launched};
use super::quota::Quota;
use super::wire::{self, Report};
use crate::backend::{BackendError, ControlLost, Exit, Usage};
use crate::settings::Egress;
use crate::sys::kernel;

pub(super) use self::commands::Job;
pub(super) use self::conversation::Answer;

/// A running tenant. It ends once, and says so to everyone who waits.
pub(super) struct Live {
    pub(super) tenant: Tenant,
    pub(super) cgroup: Option<TenantCgroup>,
    pub(super) deadline: Duration,
    /// What it was started with.
    pub(super) egress: Egress,
    socket: AsyncFd<OwnedFd>,
    handle: AsyncFd<OwnedFd>,
    next: AtomicU64,
    table: Mutex<Table>,
    dead: watch::Sender<bool>,
    /// Whether its death was waited for in vain: nobody waits a second time.
    lost: AtomicBool,
    /// Absent where the kernel bounds the tenant's files.
    pub(super) quota: Option<Quota>,
    /// Kept until the last process is gone.
    kept: Keeping,
}

#[derive(Default)]
struct Table {
    /// Nothing is added any more.
    closed: bool,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    jobs: HashMap<u64, Arc<Job>>,
    /// Ended commands whose groups still hold processes.
    leftovers: Vec<Arc<Job>>,
}

impl Live {
    /// Takes over a first process. Must be called where tasks run; [`Live::run`] has to be started with the result.
    pub(super) fn adopt(
        tenant: Tenant,
        launched: Launched,
        cgroup: Option<TenantCgroup>,
        kept: Option<Kept>,
        deadline: Duration,
        egress: Egress,
        quota: Option<Quota>,
    ) -> io::Result<Arc<Self>> {
        rustix::io::ioctl_fionbio(&launched.socket, true)?;
        Ok(Arc::new(Self {
            tenant,
            cgroup,
            deadline,
            egress,
            socket: kernel::watched(launched.socket, Interest::READABLE | Interest::WRITABLE)?,
            handle: kernel::watched(launched.handle, Interest::READABLE)?,
            next: AtomicU64::new(1),
            table: Mutex::new(Table::default()),
            dead: watch::Sender::new(false),
            lost: AtomicBool::new(false),
            quota,
            kept: Keeping::new(kept),
        }))
    }

    /// Listens to the first process until it is gone, then cleans up after it. What serves the tenant beside it ends
    /// before the first process is known to be gone.
    pub(super) async fn run(self: Arc<Self>, beside: Option<impl Future<Output = ()> + Send + 'static>) {
        let serving = Tasks::new();
        if let Some(beside) = beside {
            serving.start(beside);
        }
        let mut buffer = vec![0; wire::PACKET];
        let listened: io::Result<()> = async {
            loop {
                let mut ready = self.socket.readable().await?;
                let received = ready.try_io(|socket| wire::receive::<Report>(socket.as_fd(), &mut buffer));
                match received {
                    Ok(Ok(Some((report, descriptors)))) => self.hear(report, descriptors),
                    Ok(Ok(None)) => return Ok(()),
                    Ok(Err(fault)) => return Err(fault),
                    Err(_would_block) => {}
                }
            }
        }
        .await;
        if let Err(fault) = listened {
            tracing::error!(tenant = %self.tenant, %fault, "a tenant's first process cannot be understood; it is ended");
        }
        self.let_go();
        serving.abort();
        serving.drained().await;
        if let Err(fault) = self.reap().await {
            tracing::error!(tenant = %self.tenant, %fault, "a tenant's first process cannot be reaped");
            return;
        }
        let this = Arc::clone(&self);
        let cleaned = tokio::task::spawn_blocking(move || {
            this.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.remove(this.deadline))
        })
        .await;
        if let Ok(Err(fault)) = cleaned {
            tracing::warn!(tenant = %self.tenant, %fault, "a dead tenant's cgroups cannot be removed");
        }
        self.close();
        let this = Arc::clone(&self);
        let _ = tokio::task::spawn_blocking(move || this.kept.let_go(&this.tenant)).await;
    }

    /// The kernel lets a first process be reaped only when its whole namespace is empty: this is the proof of death.
    async fn reap(&self) -> io::Result<()> {
        loop {
            let mut ready = self.handle.readable().await?;
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::from_bits_retain(ALL_CHILDREN);
            if waitid(WaitId::PidFd(self.handle.get_ref().as_fd()), options)?.is_some() {
                return Ok(());
            }
            ready.clear_ready();
        }
    }

    /// Waits until nothing of the host is kept any more. The tenant must have ended.
    pub(super) async fn rest(&self) -> Result<(), BackendError> {
        self.kept.gone(&self.tenant).await
    }

    /// What the disk holds, if there is one.
    pub(super) fn usage(&self) -> Option<io::Result<Usage>> {
        self.kept.usage()
    }

    /// Tells everyone who waits for anything of this tenant that it has ended.
    fn close(&self) {
        let (waiting, jobs) = {
            let mut table = self.table();
            table.closed = true;
            table.leftovers.clear();
            (std::mem::take(&mut table.waiting), std::mem::take(&mut table.jobs))
        };
        // Before anybody hears of the end: who does may ask for the next start at once, and must not be given this one.
        self.dead.send_replace(true);
        // The senders' receivers read their end as the sandbox's.
        drop(waiting);
        for job in jobs.into_values() {
            job.end(Exit::SandboxEnded);
            job.gone.send_replace(true);
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Tells the kernel to end the tenant, and does not wait for it.
    pub(super) fn let_go(&self) {
        // A process that is gone already needs no signal.
        let _ = pidfd_send_signal(self.handle.get_ref(), Signal::KILL);
    }

    /// Ends every process of the tenant; returns with the kernel's word for it.
    pub(super) async fn end(&self) -> Result<(), ControlLost> {
        self.let_go();
        let mut dead = self.dead.subscribe();
        if self.lost.load(Ordering::Relaxed) && !*dead.borrow() {
            return Err(self.not_gone());
        }
        // Twice the deadline: the process has its time, then its cgroups have theirs.
        match tokio::time::timeout(2 * self.deadline, dead.wait_for(|dead| *dead)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                self.lost.store(true, Ordering::Relaxed);
                Err(self.not_gone())
            }
        }
    }

    fn not_gone(&self) -> ControlLost {
        let reason = format!("its first process was not gone within {:?}", 2 * self.deadline);
        ControlLost { tenant: self.tenant.clone(), reason }
    }

    /// Ends the tenant from a thread that may block, when nothing listens to its first process any more.
    pub(super) fn abandon(&self) {
        self.let_go();
        if self.lost.load(Ordering::Relaxed) {
            // It was waited for long enough, and a person has to look at what is left.
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::from_bits_retain(ALL_CHILDREN);
        let mut gone = [PollFd::new(self.handle.get_ref(), PollFlags::IN)];
        let deadline = Timespec::try_from(self.deadline).ok();
        // Reaped by the listener already, or by this call; if it does not end at all, its groups say so below.
        if poll(&mut gone, deadline.as_ref()).is_ok_and(|ended| ended > 0) {
            let _ = waitid(WaitId::PidFd(self.handle.get_ref().as_fd()), options);
        }
        let removed = self.cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.remove(self.deadline));
        if let Err(fault) = removed {
            tracing::warn!(tenant = %self.tenant, %fault, "a dead tenant's cgroups cannot be removed");
        }
        self.kept.let_go(&self.tenant);
    }

    /// Waits for the tenant's end.
    pub(super) async fn died(&self) {
        let mut dead = self.dead.subscribe();
        // The sender lives as long as this.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
