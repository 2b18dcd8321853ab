//! A tenant that runs: its first process, the conversation with it, and its commands.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kit::{Tenant, tasks::Tasks};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};

use super::cgroup::{CommandCgroup, TenantCgroup};
use super::kept::{Keeping, Kept};
use super::launch::{ALL_CHILDREN, Launched};
use super::quota::Quota;
use super::wire::{self, FileFault, Order, Report, Status, Step};
use crate::backend::{BackendError, ControlLost, Exit, Usage};
use crate::settings::Egress;
use crate::sys::kernel;

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

/// What an order led to.
#[derive(Debug)]
pub(super) enum Answer {
    /// With this side of its terminal, where it was to have one.
    Started(Option<OwnedFd>),
    NotStarted(Step, io::Error),
    Opened(OwnedFd),
    Written {
        bytes: u64,
        created: bool,
        size: u64,
    },
    Made,
    FileFault(FileFault),
    SelfTested(Vec<String>),
}

/// A command as the first process knows it.
pub(super) struct Job {
    pub(super) id: u64,
    /// Absent where the command has a pid namespace instead.
    pub(super) cgroup: Option<CommandCgroup>,
    pub(super) exit: watch::Sender<Option<Exit>>,
    /// Set when nothing of a command with a pid namespace is left.
    pub(super) gone: watch::Sender<bool>,
    /// Whether we ended it ourselves because there were too many files.
    pub(super) over_quota: AtomicBool,
    /// Whether we ended it ourselves, so that the kernel did not.
    pub(super) killed: AtomicBool,
    /// How many processes of the tenant the kernel had ended for want of memory when this command began.
    lost_before: u64,
    /// How many it had ended of this command when the shell ended.
    lost: OnceLock<u64>,
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

    /// A number for the next order.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a command before it is ordered, so that no report of it can come too early.
    pub(super) fn register(&self, id: u64, cgroup: Option<CommandCgroup>) -> Result<Arc<Job>, BackendError> {
        let lost_before = self.cgroup.as_ref().map_or(0, TenantCgroup::ended_for_memory);
        let job = Arc::new(Job {
            id,
            cgroup,
            exit: watch::Sender::new(None),
            gone: watch::Sender::new(false),
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
    pub(super) fn forget(&self, id: u64) {
        let job = self.table().jobs.remove(&id);
        if let Some(cgroup) = job.as_ref().and_then(|job| job.cgroup.as_ref()) {
            cgroup.remove();
        }
    }

    /// Whether a command runs, or left something that does.
    pub(super) fn has_processes(&self) -> bool {
        let table = self.table();
        let populated = |job: &Arc<Job>| job.cgroup.as_ref().is_some_and(CommandCgroup::is_populated);
        !table.jobs.is_empty() || table.leftovers.iter().any(populated)
    }

    /// Gives an order and waits for what came of it.
    pub(super) async fn ask(
        &self,
        id: u64,
        order: &Order,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, BackendError> {
        let ended = || BackendError::SandboxEnded(self.tenant.clone());
        let (answer, answered) = oneshot::channel();
        {
            let mut table = self.table();
            if table.closed {
                return Err(ended());
            }
            table.waiting.insert(id, answer);
        }
        let sent = self.order(order, descriptors).await;
        if sent.is_err() {
            self.table().waiting.remove(&id);
            return Err(ended());
        }
        answered.await.map_err(|_closed| ended())
    }

    /// Gives an order. The descriptors travel with it and may be closed afterwards.
    pub(super) async fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let mut ready = self.socket.writable().await?;
            if let Ok(sent) = ready.try_io(|socket| wire::send(socket.as_fd(), order, descriptors)) {
                return sent;
            }
        }
    }

    fn hear(&self, report: Report, descriptors: Vec<OwnedFd>) {
        match report {
            Report::Ready | Report::Refused { .. } => {}
            Report::Started { id } => self.answer(id, Answer::Started(descriptors.into_iter().next())),
            Report::NotStarted { id, step, errno } => {
                self.answer(id, Answer::NotStarted(step, io::Error::from_raw_os_error(errno)));
            }
            Report::Ended { id, status, last } => self.ended(id, status, last),
            Report::Gone { id } => {
                if let Some(job) = self.table().jobs.remove(&id) {
                    job.gone.send_replace(true);
                }
            }
            Report::Opened { id } => match descriptors.into_iter().next() {
                Some(file) => self.answer(id, Answer::Opened(file)),
                None => self.answer(id, Answer::FileFault(FileFault::Errno(libc::EBADF))),
            },
            Report::Written { id, bytes, created, size } => self.answer(id, Answer::Written { bytes, created, size }),
            Report::Made { id } => self.answer(id, Answer::Made),
            Report::FileFault { id, fault } => self.answer(id, Answer::FileFault(fault)),
            Report::SelfTested { id, faults } => self.answer(id, Answer::SelfTested(faults)),
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        if let Some(waiting) = self.table().waiting.remove(&id) {
            // Who asked may have stopped waiting; a descriptor in the answer is then closed here.
            let _ = waiting.send(answer);
        }
    }

    fn ended(&self, id: u64, status: Status, last: bool) {
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
    pub(super) fn lost_to_memory(&self, job: &Job) -> u64 {
        let counted = || {
            let own = job.cgroup.as_ref().and_then(CommandCgroup::ended_for_memory);
            let all = || self.cgroup.as_ref().map_or(0, TenantCgroup::ended_for_memory);
            own.unwrap_or_else(|| all().saturating_sub(job.lost_before))
        };
        job.lost.get().copied().unwrap_or_else(counted)
    }

    /// Commands that may have processes: those whose shell runs, and those that left something.
    pub(super) fn running(&self) -> Vec<Arc<Job>> {
        let table = self.table();
        table.jobs.values().chain(&table.leftovers).map(Arc::clone).collect()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.tidy();
        let table = self.table();
        !table.jobs.is_empty() || !table.leftovers.is_empty()
    }

    /// Waits for the tenant's end.
    pub(super) async fn died(&self) {
        let mut dead = self.dead.subscribe();
        // The sender lives as long as this.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// Removes the groups of commands of which nothing is left.
    fn tidy(&self) {
        let mut table = self.table();
        table.leftovers.retain(|job| job.cgroup.as_ref().is_some_and(|cgroup| !cgroup.remove()));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// The first end that is told counts.
    fn end(&self, exit: Exit) {
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
