//! Which jobs there are, whose they are, and whether one more is taken.
//!
//! Pure: it takes `now` and knows no tasks. Admission and retention are decided together, at one instant.
//!
//! ```text
//!   admit ──> running ──cancel──> cancelling ──┐
//!                └───────────────end───────────┴──> ended ──(read to its end, room needed | one hour | forget)──> gone
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::Tenant;

use super::output::{Output, Page, Room};
use crate::backend::{BackendError, Full};
use crate::settings::JobSettings;

/// How many jobs there may be. The numbers are the original's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands and file calls of one tenant that run at once.
    pub active_per_tenant: usize,
    pub active: usize,
    /// Jobs of one tenant whose id a client holds, running or ended.
    pub retained_per_tenant: usize,
    pub retained: usize,
    pub output: Room,
    /// How long an ended job is kept, read or not.
    pub kept: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            active_per_tenant: 8,
            active: 32,
            retained_per_tenant: 8,
            retained: 64,
            output: Room::default(),
            kept: Duration::from_secs(3600),
        }
    }
}

impl From<&JobSettings> for Limits {
    fn from(settings: &JobSettings) -> Self {
        let built_in = Self::default();
        Self {
            active_per_tenant: settings.active_per_tenant.unwrap_or(built_in.active_per_tenant),
            active: settings.active.unwrap_or(built_in.active),
            retained_per_tenant: settings.retained_per_tenant.unwrap_or(built_in.retained_per_tenant),
            retained: settings.retained.unwrap_or(built_in.retained),
            output: Room {
                bytes: settings
                    .output
                    .and_then(|size| usize::try_from(size.bytes()).ok())
                    .unwrap_or(built_in.output.bytes),
                pieces: settings.pieces.unwrap_or(built_in.output.pieces),
            },
            kept: settings.kept_s.map_or(built_in.kept, Duration::from_secs),
        }
    }
}

/// A job's name: 128 random bits, so that knowing one is a sign of having been told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JobId(u128);

/// Whether a client holds the job's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The call waits for the end itself, then forgets the job.
    Hidden,
    Retained,
    /// The call that waited is gone.
    Abandoned,
}

/// Where a job is in its life.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Running,
    Cancelling,
    Ended(Outcome),
}

/// How a job ended. By then nothing of it that was to die is alive.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Exited(i32),
    Signalled(i32),
    OutOfMemory,
    OverQuota,
    Cancelled,
    TimedOut(Duration),
    NotStarted(Arc<BackendError>),
    /// The tenant's sandbox ended under the job.
    SandboxEnded,
    /// Its start was not answered in time; what may have begun by it is ended.
    Unanswered(Duration),
    /// The service's own code failed at it; its tree is dead.
    Broken,
    /// No proof of its death could be had.
    Lost,
}

/// What is to be said of a command that ended by itself beside how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aftermath {
    pub(crate) left: Left,
    /// How many of its processes were ended because memory was used up.
    pub(crate) lost_to_memory: u64,
    /// Where it could write nothing.
    pub(crate) full: Option<Full>,
}

/// What a command left running in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Left {
    #[default]
    Nothing,
    Processes(usize),
    /// Some, which the backend cannot count.
    Some,
}

/// A job that stands in the way of one more: its id, the beginning of its command, and whether it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) id: JobId,
    pub(crate) label: String,
    pub(crate) ended: bool,
}

/// Why one more job is not taken. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The service is stopping, or lost control.
    Closed,
    /// The tenant is being stopped or removed.
    Leaving,
    TenantBusy {
        most: usize,
        running: Vec<Standing>,
    },
    Busy {
        most: usize,
    },
    /// Results that nobody has read to the end fill the tenant's share.
    TenantUnread {
        most: usize,
        unread: Vec<Standing>,
    },
    Unread {
        most: usize,
    },
}

/// Every job; `D` is what the driver keeps beside one.
#[derive(Debug)]
pub(crate) struct Table<D> {
    limits: Limits,
    jobs: HashMap<JobId, Job<D>>,
    leaving: Vec<Tenant>,
    closed: bool,
}

#[derive(Debug)]
struct Job<D> {
    tenant: Tenant,
    label: String,
    kept: Kept,
    state: State,
    begun: Instant,
    ended: Option<Instant>,
    aftermath: Aftermath,
    /// The client has seen the end of the output together with the final state, or wants none of it: it cancelled.
    may_give_way: bool,
    output: Output,
    door: D,
}

/// What one look at a job shows.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) state: State,
    pub(crate) page: Page,
    pub(crate) begun: Instant,
    pub(crate) ended: Option<Instant>,
    pub(crate) aftermath: Aftermath,
}

impl<D> Table<D> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, jobs: HashMap::new(), leaving: Vec::new(), closed: false }
    }

    /// Takes one more job, dropping ended ones where that is allowed, or refuses it and changes nothing.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        id: JobId,
        tenant: &Tenant,
        label: &str,
        kept: Kept,
        door: D,
    ) -> Result<(), Refusal> {
        self.sweep(now);
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.leaving.contains(tenant) {
            return Err(Refusal::Leaving);
        }
        self.check_active(tenant)?;
        if kept == Kept::Retained {
            self.make_room(tenant)?;
        }
        let job = Job {
            tenant: tenant.clone(),
            label: shortened(label),
            kept,
            state: State::Running,
            begun: now,
            ended: None,
            aftermath: Aftermath::default(),
            may_give_way: false,
            output: Output::new(self.limits.output),
            door,
        };
        self.jobs.insert(id, job);
        Ok(())
    }

    /// The output of a job that has not ended, to append to.
    pub(crate) fn output(&mut self, id: JobId) -> Option<&mut Output> {
        self.jobs.get_mut(&id).filter(|job| !job.is_ended()).map(|job| &mut job.output)
    }

    /// Any job's output, to read from.
    pub(crate) fn written(&self, id: JobId) -> Option<&Output> {
        self.jobs.get(&id).map(|job| &job.output)
    }

    /// Marks a job that runs as being cancelled; the state after that.
    pub(crate) fn cancel(&mut self, id: JobId) -> Option<&State> {
        let job = self.jobs.get_mut(&id)?;
        match job.state {
            State::Running => job.state = State::Cancelling,
            State::Cancelling => {}
            State::Ended(_) => job.may_give_way = true,
        }
        Some(&job.state)
    }

    /// Seals the output and shows the final state, in this order and at one instant. A second end changes nothing.
    ///
    /// An abandoned job is dropped with its end.
    pub(crate) fn end(&mut self, now: Instant, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.is_ended()) else { return };
        if job.kept == Kept::Abandoned {
            self.jobs.remove(&id);
        } else {
            job.output.seal();
            job.may_give_way = matches!(job.state, State::Cancelling);
            job.state = State::Ended(outcome);
            job.ended = Some(now);
        }
    }

    /// Notes what is to be told with a job's end.
    pub(crate) fn note(&mut self, id: JobId, aftermath: Aftermath) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.aftermath = aftermath;
        }
    }

    /// Drops a job whose end nobody will read: at once if it has ended, else when it ends.
    pub(crate) fn abandon(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.kept = Kept::Abandoned;
            if job.is_ended() {
                self.jobs.remove(&id);
            }
        }
    }

    /// One page of a job's output, with its state.
    pub(crate) fn look(&mut self, now: Instant, id: JobId, cursor: u64, most: usize) -> Option<Look> {
        self.sweep(now);
        let job = self.jobs.get_mut(&id)?;
        let page = job.output.page(cursor, most);
        job.may_give_way |= job.is_ended() && !page.has_more;
        Some(Look { state: job.state.clone(), page, begun: job.begun, ended: job.ended, aftermath: job.aftermath })
    }

    /// Whether a job runs and has nothing after `cursor` yet.
    pub(crate) fn is_silent(&self, id: JobId, cursor: u64) -> bool {
        self.jobs.get(&id).is_some_and(|job| !job.is_ended() && job.output.end() <= cursor)
    }

    pub(crate) fn state(&self, id: JobId) -> Option<&State> {
        self.jobs.get(&id).map(|job| &job.state)
    }

    pub(crate) fn door(&self, id: JobId) -> Option<&D> {
        self.jobs.get(&id).map(|job| &job.door)
    }

    pub(crate) fn tenant(&self, id: JobId) -> Option<&Tenant> {
        self.jobs.get(&id).map(|job| &job.tenant)
    }

    /// Whether clients hold the job's id.
    pub(crate) fn is_retained(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.kept == Kept::Retained)
    }

    /// Jobs that run, of one tenant or of all.
    pub(crate) fn active(&self, tenant: Option<&Tenant>) -> Vec<JobId> {
        let mut active: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| !job.is_ended() && tenant.is_none_or(|tenant| job.tenant == *tenant))
            .map(|(id, _)| *id)
            .collect();
        active.sort_unstable();
        active
    }

    /// Takes no more jobs, of anyone.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Takes no more jobs of one tenant until it may [`return`](Table::welcome).
    pub(crate) fn bar(&mut self, tenant: &Tenant) {
        if !self.leaving.contains(tenant) {
            self.leaving.push(tenant.clone());
        }
    }

    pub(crate) fn welcome(&mut self, tenant: &Tenant) {
        self.leaving.retain(|leaving| leaving != tenant);
    }

    /// Drops every ended job of a tenant.
    pub(crate) fn forget_tenant(&mut self, tenant: &Tenant) {
        self.jobs.retain(|_, job| job.tenant != *tenant || !job.is_ended());
    }

    fn sweep(&mut self, now: Instant) {
        let kept = self.limits.kept;
        self.jobs.retain(|_, job| job.ended.is_none_or(|ended| now.saturating_duration_since(ended) < kept));
    }

    fn check_active(&self, tenant: &Tenant) -> Result<(), Refusal> {
        let running: Vec<_> = self.standing(|job| !job.is_ended() && job.tenant == *tenant);
        if running.len() >= self.limits.active_per_tenant {
            return Err(Refusal::TenantBusy { most: self.limits.active_per_tenant, running });
        }
        if self.jobs.values().filter(|job| !job.is_ended()).count() >= self.limits.active {
            return Err(Refusal::Busy { most: self.limits.active });
        }
        Ok(())
    }

    /// Drops at most one job for each bound, and only one that its client is done with.
    fn make_room(&mut self, tenant: &Tenant) -> Result<(), Refusal> {
        let own = self.retained(|job| job.tenant == *tenant);
        let all = self.retained(|_| true);
        let own_victim = (own >= self.limits.retained_per_tenant)
            .then(|| {
                self.oldest_done_with(|job| job.tenant == *tenant).ok_or_else(|| Refusal::TenantUnread {
                    most: self.limits.retained_per_tenant,
                    unread: self.standing(|job| job.kept == Kept::Retained && job.tenant == *tenant),
                })
            })
            .transpose()?;
        let victim = match own_victim {
            // Dropping one of the tenant's own makes room among all, too.
            Some(victim) => Some(victim),
            None if all >= self.limits.retained => {
                Some(self.oldest_done_with(|_| true).ok_or(Refusal::Unread { most: self.limits.retained })?)
            }
            None => None,
        };
        if let Some(victim) = victim {
            self.jobs.remove(&victim);
        }
        Ok(())
    }

    fn retained(&self, which: impl Fn(&Job<D>) -> bool) -> usize {
        self.jobs.values().filter(|job| job.kept == Kept::Retained && which(job)).count()
    }

    fn oldest_done_with(&self, which: impl Fn(&Job<D>) -> bool) -> Option<JobId> {
        self.jobs
            .iter()
            .filter(|(_, job)| job.kept == Kept::Retained && job.is_ended() && job.may_give_way && which(job))
            .min_by_key(|(id, job)| (job.ended, **id))
            .map(|(id, _)| *id)
    }

    fn standing(&self, which: impl Fn(&Job<D>) -> bool) -> Vec<Standing> {
        let mut standing: Vec<_> = self.jobs.iter().filter(|(_, job)| which(job)).collect();
        standing.sort_by_key(|(id, job)| (job.begun, **id));
        standing
            .into_iter()
            .map(|(id, job)| Standing { id: *id, label: job.label.clone(), ended: job.is_ended() })
            .collect()
    }
}

impl<D> Job<D> {
    fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }
}

impl JobId {
    pub(crate) fn new(bits: u128) -> Self {
        Self(bits)
    }

    /// Reads an id as it is printed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if plain { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The first line of a command, short enough to name it in a sentence.
fn shortened(label: &str) -> String {
    let line = label.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST_LABEL) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

const LONGEST_LABEL: usize = 40;

#[cfg(test)]
mod tests;
