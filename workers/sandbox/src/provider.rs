//! Tenants and the handles that clients hold on them.
//!
//! Every handle and job is checked against its owner here, whoever has checked before. What makes, opens or removes a
//! tenant's sandbox happens in turn (`turns`), so that no two of them meet. Knows neither JSON nor the operating system.

mod names;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::{Tenant, clock};

use crate::backend::{
    Backend, BackendError, ControlLost, FileError, Guest, GuestPath, Pile, Proof, Provision, Provisioned, Written,
};
use crate::jobs::driver::{Attached, Jobs, Submission};
use crate::jobs::table::{JobId, Limits, Look, Refusal, State};

pub(crate) use names::{Names, SessionId};
use turns::Turns;

/// Every tenant of this worker; clones are the same.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    jobs: Jobs,
    names: Names,
    turns: Turns,
    handles: Mutex<HashMap<Tenant, Handles>>,
}

/// The references that clients hold on one sandbox.
#[derive(Debug)]
struct Handles {
    open: usize,
    used: std::time::Instant,
}

/// Whose handles and jobs a caller may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One tenant's, who was authenticated by the edge.
    Tenant(Tenant),
    /// Everyone's: the caller sits at this machine.
    Local,
}

/// Why something was not done. Each says for itself whether anything was begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("no open session")]
    NoSession,
    #[error("the session is closed")]
    SessionClosed,
    #[error("no such job")]
    NoJob,
    #[error("not admitted")]
    Refused(Refusal),
    #[error("background jobs are not supported")]
    NoJobs,
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Start(#[from] Arc<BackendError>),
    #[error(transparent)]
    File(#[from] FileError),
}

/// What opening gives.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) session: SessionId,
    pub(crate) guest: Guest,
}

impl Provider {
    pub(crate) fn new(backend: Arc<dyn Backend>, names: Names, limits: Limits) -> Self {
        let jobs = Jobs::new(Arc::clone(&backend), limits);
        let (turns, handles) = (Turns::default(), Mutex::default());
        Self(Arc::new(Inner { backend, jobs, names, turns, handles }))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// Makes a tenant's sandbox, or completes it.
    pub(crate) async fn create(&self, tenant: &Tenant, pile: Pile) -> Result<Provisioned, BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        self.in_turn(tenant, async move { this.0.backend.provision(&owner, &Provision::from(pile)).await }).await
    }

    /// Ends a tenant's jobs and handles, then removes its sandbox.
    pub(crate) async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            this.0.jobs.halt(&owner).await;
            this.handles().remove(&owner);
            let removed = this.0.backend.destroy(&owner, delete_pile).await;
            this.0.jobs.welcome(&owner);
            removed
        };
        self.in_turn(tenant, work).await
    }

    /// Opens one more handle on a tenant's sandbox, starting it if needed.
    pub(crate) async fn open(&self, tenant: &Tenant) -> Result<Opened, Fault> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            let guest = this.0.backend.open(&owner).await?;
            let now = clock::now();
            let mut handles = this.handles();
            let entry = handles.entry(owner).or_insert(Handles { open: 0, used: now });
            // Handles that nobody used for so long are gone, whoever held them.
            if now.saturating_duration_since(entry.used) >= IDLE_HANDLE {
                entry.open = 0;
            }
            *entry = Handles { open: entry.open.saturating_add(1), used: now };
            Ok(guest)
        };
        let guest = self.in_turn(tenant, work).await?;
        Ok(Opened { session: self.0.names.session(tenant), guest })
    }

    /// Gives one handle back; how many stay. Nothing in the sandbox ends by it.
    pub(crate) fn close(&self, scope: &Scope, session: &str) -> Result<usize, Fault> {
        let tenant = self.tenant_of(scope, session)?;
        let mut handles = self.handles();
        let Some(handles) = handles.get_mut(&tenant) else { return Ok(0) };
        handles.open = handles.open.saturating_sub(1);
        Ok(handles.open)
    }

    /// Whose an open session is. Naming it is using it.
    ///
    /// A session of somebody else and one that never was are answered alike.
    pub(crate) fn tenant_of(&self, scope: &Scope, session: &str) -> Result<Tenant, Fault> {
        let now = clock::now();
        let mut handles = self.handles();
        let tenant = match scope {
            Scope::Tenant(tenant) => Some(tenant.clone()),
            Scope::Local => handles.keys().find(|tenant| self.0.names.session(tenant).is(session)).cloned(),
        };
        let tenant = tenant.filter(|tenant| self.0.names.session(tenant).is(session)).ok_or(Fault::NoSession)?;
        // A worker that was started anew knows no handles, but their names: whoever held one goes on with it.
        let entry = handles.entry(tenant.clone()).or_insert(Handles { open: 1, used: now });
        let idle = now.saturating_duration_since(entry.used) >= IDLE_HANDLE && self.0.jobs.active(&tenant) == 0;
        if idle {
            entry.open = 0;
            return Err(Fault::NoSession);
        }
        if entry.open == 0 {
            return Err(Fault::SessionClosed);
        }
        entry.used = now;
        Ok(tenant)
    }

    /// How many handles and running jobs a tenant has.
    pub(crate) fn usage(&self, tenant: &Tenant) -> (usize, usize) {
        let open = self.handles().get(tenant).map_or(0, |handles| handles.open);
        (open, self.0.jobs.active(tenant))
    }

    /// Starts a command in the session's sandbox; returns when it runs.
    pub(crate) async fn start(&self, scope: &Scope, session: &str, submission: Submission) -> Result<Attached, Fault> {
        let tenant = self.tenant_of(scope, session)?;
        let job = self.0.jobs.submit(&tenant, submission).map_err(Fault::Refused)?;
        job.started().await?;
        Ok(job)
    }

    /// Whether a command may go on when no call waits for it.
    pub(crate) fn check_background_jobs(&self) -> Result<(), Fault> {
        match self.0.backend.assurances().proof {
            Proof::Cgroup | Proof::PidNamespace => Ok(()),
            Proof::None => Err(Fault::NoJobs),
        }
    }

    pub(crate) async fn read_file(&self, scope: &Scope, session: &str, path: &GuestPath) -> Result<Vec<u8>, Fault> {
        let tenant = self.tenant_of(scope, session)?;
        let _place = self.0.jobs.occupy(&tenant, &format!("read_file {}", path.path)).map_err(Fault::Refused)?;
        self.heed_file(self.0.backend.read_file(&tenant, path, MOST_FILE_BYTES).await)
    }

    /// Writes a whole file. The write is finished even if the caller goes away: half a file would be worse.
    pub(crate) async fn write_file(
        &self,
        scope: &Scope,
        session: &str,
        path: GuestPath,
        content: Vec<u8>,
    ) -> Result<Written, Fault> {
        let tenant = self.tenant_of(scope, session)?;
        let place = self.0.jobs.occupy(&tenant, &format!("write_file {}", path.path)).map_err(Fault::Refused)?;
        let backend = Arc::clone(&self.0.backend);
        let work = async move {
            let _place = place;
            backend.write_file(&tenant, &path, content).await
        };
        let written = self.0.turns.detached(work).await.ok_or(BackendError::ShuttingDown)?;
        self.heed_file(written)
    }

    /// One page of a job of the caller's.
    pub(crate) async fn look(
        &self,
        scope: &Scope,
        job: &str,
        cursor: u64,
        most: usize,
        wait: Duration,
    ) -> Result<(JobId, Look), Fault> {
        let id = self.job_of(scope, job)?;
        self.0.jobs.look(id, cursor, most, wait).await.map(|look| (id, look)).ok_or(Fault::NoJob)
    }

    pub(crate) fn cancel(&self, scope: &Scope, job: &str) -> Result<(JobId, State), Fault> {
        let id = self.job_of(scope, job)?;
        self.0.jobs.cancel(id).map(|state| (id, state)).ok_or(Fault::NoJob)
    }

    /// What a job that goes on has written so far.
    pub(crate) async fn glance(&self, id: JobId, most: usize) -> Option<Look> {
        self.0.jobs.look(id, 0, most, Duration::ZERO).await
    }

    /// Resolves when control over a tenant's processes is lost.
    pub(crate) async fn lost(&self) -> ControlLost {
        self.0.jobs.lost().await
    }

    /// Ends every job and every tenant's processes.
    pub(crate) async fn shutdown(&self) -> Result<(), BackendError> {
        self.0.jobs.close().await;
        let ended = self.heed(self.0.backend.shutdown().await);
        self.0.jobs.drained().await;
        self.0.turns.drained().await;
        ended
    }

    fn job_of(&self, scope: &Scope, job: &str) -> Result<JobId, Fault> {
        let id = JobId::parse(job).ok_or(Fault::NoJob)?;
        let owner = self.0.jobs.owner(id).ok_or(Fault::NoJob)?;
        match scope {
            Scope::Tenant(tenant) if *tenant != owner => Err(Fault::NoJob),
            Scope::Tenant(_) | Scope::Local => Ok(id),
        }
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        work: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let done = self.0.turns.take(tenant, work).await.ok_or_else(|| BackendError::Step {
            step: format!("wait for the other changes of {tenant}"),
            source: std::io::ErrorKind::ResourceBusy.into(),
        })?;
        self.heed(done)
    }

    /// Closes admission when what came back is a loss of control.
    fn heed<T>(&self, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
        if let Err(BackendError::ControlLost(lost)) = &outcome {
            self.0.jobs.lose(lost.clone());
        }
        outcome
    }

    fn heed_file<T>(&self, outcome: Result<T, FileError>) -> Result<T, Fault> {
        match outcome {
            Err(FileError::Backend(fault)) => Ok(self.heed(Err(fault))?),
            outcome => Ok(outcome?),
        }
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<Tenant, Handles>> {
        self.0.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The original's bound on a file, both ways.
pub(crate) const MOST_FILE_BYTES: u64 = 3 << 20;

/// How long a handle may go unused.
pub(crate) const IDLE_HANDLE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
