//! What moves each job through its life: one task a job, which alone touches its command.
//!
//! The final state is shown only when the kernel has proven what it says: after a cancellation or a timeout the whole tree
//! is dead. A shell that ends by itself ends its job, although what it left in the background may live on and hold the
//! output open; what such processes write later is read and thrown away, so that they neither block nor die of it.

mod attached;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Tenant, clock};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::output::Stream;
use super::pipes::{Pipes, feed};
use super::table::{Aftermath, JobId, Kept, Left, Limits, Look, Outcome, Refusal, State, Table};
use crate::backend::{Backend, BackendError, Command, CommandSpec, ControlLost, Exit};
use crate::random;

pub(crate) use self::attached::{Attached, Finished, Occupied};

/// Every job of this worker; clones are the same.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Shared>);

struct Shared {
    backend: Arc<dyn Backend>,
    table: Mutex<Table<Door>>,
    tasks: Tasks,
    /// Bounds the readers that throw away what background processes write.
    discards: Arc<Semaphore>,
    lost: watch::Sender<Option<ControlLost>>,
}

/// How others reach a job's task, and how it tells them of news.
pub(crate) struct Door {
    cancel: watch::Sender<bool>,
    news: watch::Sender<News>,
}

#[derive(Clone, Copy, Debug, Default)]
struct News {
    started: bool,
    ended: bool,
}

/// A command and what it is given.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) command: CommandSpec,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) timeout: Duration,
    pub(crate) kept: Kept,
}

impl Jobs {
    pub(crate) fn new(backend: Arc<dyn Backend>, limits: Limits) -> Self {
        Self(Arc::new(Shared {
            backend,
            table: Mutex::new(Table::new(limits)),
            tasks: Tasks::new(),
            discards: Arc::new(Semaphore::new(MOST_DISCARDS)),
            lost: watch::Sender::new(None),
        }))
    }

    /// Admits a command and starts it, attached to the caller.
    pub(crate) fn submit(&self, tenant: &Tenant, submission: Submission) -> Result<Attached, Refusal> {
        let (cancel, cancelled) = watch::channel(false);
        let label = submission.command.command.clone();
        let attached = self.admit(tenant, &label, submission.kept, cancel)?;
        let (jobs, id, tenant) = (self.clone(), attached.id, tenant.clone());
        self.0.tasks.start(async move {
            let mut guard = Guard { jobs: jobs.clone(), id, tenant: tenant.clone(), command: None };
            let outcome = jobs.run(id, &tenant, submission, cancelled, &mut guard).await;
            jobs.end(id, outcome);
        });
        Ok(attached)
    }

    /// Admits a call that runs no command of its own, such as a file's; it counts until the value is dropped.
    pub(crate) fn occupy(&self, tenant: &Tenant, label: &str) -> Result<Occupied, Refusal> {
        let (cancel, _) = watch::channel(false);
        let attached = self.admit(tenant, label, Kept::Hidden, cancel)?;
        Ok(Occupied(attached))
    }

    fn admit(
        &self,
        tenant: &Tenant,
        label: &str,
        kept: Kept,
        cancel: watch::Sender<bool>,
    ) -> Result<Attached, Refusal> {
        let id = JobId::new(random::bits());
        let door = Door { cancel, news: watch::Sender::new(News::default()) };
        self.table().admit(clock::now(), id, tenant, label, kept, door)?;
        Ok(Attached { jobs: self.clone(), id, held: true })
    }

    /// Whose a retained job is.
    pub(crate) fn owner(&self, id: JobId) -> Option<Tenant> {
        let table = self.table();
        table.tenant(id).filter(|_| table.is_retained(id)).cloned()
    }

    /// One page of a job, waiting up to `wait` for something to be on it.
    pub(crate) async fn look(&self, id: JobId, cursor: u64, most: usize, wait: Duration) -> Option<Look> {
        let mut news = self.news(id)?;
        let waiting = async {
            while self.table().is_silent(id, cursor) {
                if news.changed().await.is_err() {
                    return;
                }
            }
            // A page a word would make a client poll for ever; the rest of the burst is worth a moment.
            let _ = timeout(BURST, news.wait_for(|news| news.ended)).await;
        };
        if !wait.is_zero() && self.table().is_silent(id, cursor) {
            let _ = timeout(wait, waiting).await;
        }
        self.table().look(clock::now(), id, cursor, most)
    }

    /// Asks a job to stop. Its state says when it has.
    pub(crate) fn cancel(&self, id: JobId) -> Option<State> {
        let mut table = self.table();
        let state = table.cancel(id)?.clone();
        if let Some(door) = table.door(id) {
            door.cancel.send_replace(true);
        }
        Some(state)
    }

    /// How many commands and file calls of the tenant run now.
    pub(crate) fn active(&self, tenant: &Tenant) -> usize {
        self.table().active(Some(tenant)).len()
    }

    /// Takes no more jobs of a tenant and ends those that run; returns when they have ended, or when one takes so long
    /// that the end of the whole sandbox, which follows, is what will end it.
    pub(crate) async fn halt(&self, tenant: &Tenant) {
        self.table().bar(tenant);
        let active = self.table().active(Some(tenant));
        if !self.stop(active, LONGEST_HALT).await {
            tracing::warn!(%tenant, "a job does not end by itself; it ends with the sandbox");
        }
        self.table().forget_tenant(tenant);
    }

    /// Takes jobs of a tenant again.
    pub(crate) fn welcome(&self, tenant: &Tenant) {
        self.table().welcome(tenant);
    }

    /// Takes no more jobs and ends those that run; returns when they have ended.
    pub(crate) async fn close(&self) {
        self.table().close();
        let active = self.table().active(None);
        if !self.stop(active, LONGEST_STOP).await {
            tracing::error!("a job did not end when it was told to");
        }
    }

    /// Waits for the tasks that read what background processes write; called when those are dead.
    pub(crate) async fn drained(&self) {
        if timeout(LONGEST_DRAIN, self.0.tasks.drained()).await.is_err() {
            tracing::warn!("a job's task did not end");
        }
        self.0.tasks.abort();
    }

    /// Closes admission for good: a death could not be proven.
    pub(crate) fn lose(&self, lost: ControlLost) {
        tracing::error!(tenant = %lost.tenant, reason = %lost.reason, "control over processes is lost; nothing is admitted any more");
        self.table().close();
        self.0.lost.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(lost);
            }
            first
        });
    }

    /// Resolves when control is lost, and never otherwise.
    pub(crate) async fn lost(&self) -> ControlLost {
        let mut lost = self.0.lost.subscribe();
        match lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone()) {
            Some(lost) => lost,
            // The sender lives in `self`.
            None => std::future::pending().await,
        }
    }

    /// Tells jobs to end; whether they did, in the time that they are given.
    async fn stop(&self, ids: Vec<JobId>, patience: Duration) -> bool {
        let news: Vec<_> = ids.iter().filter_map(|id| self.news(*id)).collect();
        for id in ids {
            self.cancel(id);
        }
        let all = async {
            for mut news in news {
                // An abandoned job's door goes with its end.
                let _ = news.wait_for(|news| news.ended).await;
            }
        };
        timeout(patience, all).await.is_ok()
    }

    async fn run(
        &self,
        id: JobId,
        tenant: &Tenant,
        submission: Submission,
        mut cancelled: watch::Receiver<bool>,
        guard: &mut Guard,
    ) -> Outcome {
        let (limit, patience) = (submission.timeout, self.0.backend.longest_start());
        // A cancellation waits for it: what was begun has to be known before it can be ended with a proof.
        let started = match timeout(patience, self.0.backend.start(tenant, submission.command)).await {
            Ok(Ok(started)) => started,
            Ok(Err(BackendError::ControlLost(lost))) => {
                self.lose(lost);
                return Outcome::Lost;
            }
            Ok(Err(fault)) => return Outcome::NotStarted(Arc::new(fault)),
            Err(_elapsed) => {
                tracing::error!(%tenant, "a sandbox does not answer the start of a command");
                return Outcome::Unanswered(patience);
            }
        };
        self.tell(id, |news| news.started = true);
        // What its sandbox took to start is no time of the command's.
        let deadline = sleep(limit);
        let mut pipes = Pipes::new(started.stdout, started.stderr);
        let feeding = feed(started.stdin, submission.stdin);
        let command: Arc<dyn Command> = Arc::from(started.command);
        guard.command = Some(Arc::clone(&command));
        let ended = command.ended();
        tokio::pin!(deadline, feeding, ended);
        let (mut fed, mut open) = (false, true);
        let stop = loop {
            tokio::select! {
                biased;
                _ = cancelled.wait_for(|cancelled| *cancelled) => break Outcome::Cancelled,
                () = &mut deadline => break Outcome::TimedOut(limit),
                exit = &mut ended => break exit.into(),
                () = &mut feeding, if !fed => fed = true,
                read = pipes.read(), if open => match read {
                    Some((stream, bytes)) => self.append(id, stream, bytes),
                    None => open = false,
                },
            }
        };
        match stop {
            Outcome::Cancelled | Outcome::TimedOut(_) => {
                if let Err(lost) = command.kill().await {
                    self.lose(lost);
                    return Outcome::Lost;
                }
                self.gather(id, &mut pipes, AFTER_KILL).await;
            }
            Outcome::Exited(_)
            | Outcome::Signalled(_)
            | Outcome::OutOfMemory
            | Outcome::OverQuota
            | Outcome::SandboxEnded
            | Outcome::NotStarted(_)
            | Outcome::Unanswered(_)
            | Outcome::Broken
            | Outcome::Lost => {
                if let Some(lost) = command.lost() {
                    self.lose(lost);
                    return Outcome::Lost;
                }
                self.gather(id, &mut pipes, silence(&*command)).await;
                self.discard(pipes);
                let aftermath = aftermath(&*command).await;
                self.table().note(id, aftermath);
            }
        }
        stop
    }

    /// Takes what is in the pipes still, until their end or until nothing has come for `silence`.
    async fn gather(&self, id: JobId, pipes: &mut Pipes, silence: Duration) {
        let all = async {
            while let Ok(Some((stream, bytes))) = timeout(silence, pipes.read()).await {
                self.append(id, stream, bytes);
            }
        };
        let _ = timeout(LONGEST_GATHER, all).await;
    }

    /// Goes on reading for processes that the command left behind.
    fn discard(&self, pipes: Pipes) {
        if pipes.is_open()
            && let Ok(slot) = Arc::clone(&self.0.discards).try_acquire_owned()
        {
            let mut pipes = pipes;
            self.0.tasks.start(async move {
                let _slot = slot;
                while pipes.read().await.is_some() {}
            });
        }
    }

    fn append(&self, id: JobId, stream: Stream, bytes: &[u8]) {
        if let Some(output) = self.table().output(id) {
            output.append(stream, bytes);
        }
        self.tell(id, |_| {});
    }

    fn end(&self, id: JobId, outcome: Outcome) {
        let mut table = self.table();
        let news = table.door(id).map(|door| door.news.clone());
        table.end(clock::now(), id, outcome);
        drop(table);
        if let Some(news) = news {
            news.send_modify(|news| *news = News { started: true, ended: true });
        }
    }

    fn tell(&self, id: JobId, change: impl FnOnce(&mut News)) {
        if let Some(door) = self.table().door(id) {
            door.news.send_modify(change);
        }
    }

    fn news(&self, id: JobId) -> Option<watch::Receiver<News>> {
        self.table().door(id).map(|door| door.news.subscribe())
    }

    fn table(&self) -> MutexGuard<'_, Table<Door>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be said beside how a command ended.
async fn aftermath(command: &dyn Command) -> Aftermath {
    let left = match command.is_populated().then(|| command.population()) {
        // All may have ended between the two looks.
        None | Some(Some(0)) => Left::Nothing,
        Some(Some(count)) => Left::Processes(count),
        Some(None) => Left::Some,
    };
    Aftermath { left, lost_to_memory: command.lost_to_memory(), full: command.full().await }
}

/// What ends a job whose task breaks down: its command may run then, and nobody else could end it.
struct Guard {
    jobs: Jobs,
    id: JobId,
    tenant: Tenant,
    command: Option<Arc<dyn Command>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        tracing::error!(tenant = %self.tenant, job = %self.id, "the task of a job broke down; its command is ended");
        let (jobs, id, command) = (self.jobs.clone(), self.id, self.command.take());
        self.jobs.0.tasks.start(async move {
            // Without a command the start was under way, and what begins by it is ended by the backend.
            let killed = match command {
                Some(command) => command.kill().await.map(|_| ()),
                None => Ok(()),
            };
            let outcome = match killed {
                Ok(()) => Outcome::Broken,
                Err(lost) => {
                    jobs.lose(lost);
                    Outcome::Lost
                }
            };
            jobs.end(id, outcome);
        });
    }
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal(signal) => Self::Signalled(signal),
            Exit::OutOfMemory => Self::OutOfMemory,
            Exit::OverQuota => Self::OverQuota,
            Exit::SandboxEnded => Self::SandboxEnded,
        }
    }
}

/// How long a pipe may be silent after the shell's end before its output counts as whole.
///
/// What the shell and its dead children wrote is in the pipe already. With nobody left the end of file is sure to come.
fn silence(command: &dyn Command) -> Duration {
    if command.is_populated() { WITH_LEFTOVERS } else { WITHOUT_LEFTOVERS }
}

const WITH_LEFTOVERS: Duration = Duration::from_millis(50);
const WITHOUT_LEFTOVERS: Duration = Duration::from_secs(2);
const AFTER_KILL: Duration = Duration::from_secs(1);
/// A background process may write without end.
const LONGEST_GATHER: Duration = Duration::from_secs(3);
/// How long a look waits for the rest of a burst.
const BURST: Duration = Duration::from_millis(100);
/// A tenant can hold a call of its own with a stopped process, and must not hold the operator with it.
const LONGEST_HALT: Duration = Duration::from_secs(2);
/// A kill escalates by itself well before this.
const LONGEST_STOP: Duration = Duration::from_secs(30);
const LONGEST_DRAIN: Duration = Duration::from_secs(5);
/// Past this many, a background process that writes finds its pipe closed.
const MOST_DISCARDS: usize = 512;

#[cfg(test)]
mod tests;
