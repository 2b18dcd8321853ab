//! Tenants and the handles that clients hold on them.
//!
//! Every handle and job is checked against its owner here, whoever has checked before. What makes, opens or removes a
//! tenant's sandbox happens in turn (`turns`), so that no two of them meet. Knows neither JSON nor the operating system.

mod handles;
mod idle;
mod operator;
mod turns;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Tenant, clock};

use crate::backend::{
    Backend, BackendError, ControlLost, FileError, Guest, GuestPath, Pile, Proof, Provision, Provisioned, Record,
    Written,
};
use crate::jobs::driver::{Attached, Jobs, Submission};
use crate::jobs::table::{JobId, Limits, Look, Refusal, State};

use crate::settings::Clocks;
use handles::Handles;
use turns::Turns;

/// Every tenant of this worker; clones are the same.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    jobs: Jobs,
    turns: Turns,
    handles: Mutex<Handles>,
    /// Who is disabled, as far as this process has looked or seen to it itself.
    barred: Mutex<BTreeSet<Tenant>>,
    clocks: Clocks,
    /// What looks for idle sandboxes.
    watch: Tasks,
}

/// How content goes into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placing {
    /// Behind what is there, instead of in its place.
    pub(crate) append: bool,
    /// After making the folders above it.
    pub(crate) parents: bool,
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

impl Provider {
    pub(crate) fn new(backend: Arc<dyn Backend>, limits: Limits, clocks: Clocks) -> Self {
        let jobs = Jobs::new(Arc::clone(&backend), limits);
        let (turns, handles, watch) = (Turns::default(), Mutex::new(Handles::new(clocks)), Tasks::new());
        Self(Arc::new(Inner { backend, jobs, turns, handles, barred: Mutex::default(), clocks, watch }))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// How long handles and idle sandboxes stay.
    pub(crate) fn clocks(&self) -> Clocks {
        self.0.clocks
    }

    /// Makes a tenant's sandbox, or completes it.
    pub(crate) async fn create(&self, tenant: &Tenant, pile: Pile) -> Result<Provisioned, BackendError> {
        self.provision(tenant, Provision::from(pile)).await
    }

    /// Ends a tenant's jobs and handles, then removes its sandbox.
    pub(crate) async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            this.cleared(&owner, this.0.backend.destroy(&owner, delete_pile)).await?;
            this.bar(&owner, false);
            Ok(())
        };
        self.in_turn(tenant, work).await
    }

    /// Does work on a tenant that has no job and no handle, and gets none before the work is done.
    async fn cleared<T>(&self, tenant: &Tenant, work: impl Future<Output = T>) -> T {
        self.0.jobs.halt(tenant).await;
        self.handles().forget(tenant);
        let done = work.await;
        self.0.jobs.welcome(tenant);
        done
    }

    /// Opens one more handle on a tenant's sandbox, starting it if needed.
    pub(crate) async fn open(&self, tenant: &Tenant) -> Result<Guest, Fault> {
        let (this, owner) = (self.clone(), tenant.clone());
        let work = async move {
            allowed(&owner, &this.0.backend.record(&owner).await?)?;
            let guest = this.0.backend.open(&owner).await?;
            let busy = this.is_busy(&owner);
            this.handles().open(&owner, clock::now(), busy);
            Ok(guest)
        };
        Ok(self.in_turn(tenant, work).await?)
    }

    /// Gives one handle back; how many stay. Nothing in the sandbox ends by it.
    pub(crate) async fn close(&self, scope: &Scope, session: &str) -> Result<usize, Fault> {
        let (tenant, _) = self.named(scope, session).await?;
        let busy = self.is_busy(&tenant);
        let mut handles = self.handles();
        handles.touch(&tenant, clock::now(), busy)?;
        Ok(handles.close(&tenant))
    }

    /// Whose an open session is, for using the sandbox now. Naming it is using it.
    pub(crate) async fn tenant_of(&self, scope: &Scope, session: &str) -> Result<Tenant, Fault> {
        let (tenant, record) = self.named(scope, session).await?;
        allowed(&tenant, &record)?;
        let busy = self.is_busy(&tenant);
        let stopping = {
            let mut handles = self.handles();
            handles.touch(&tenant, clock::now(), busy)?;
            handles.is_stopping(&tenant)
        };
        if stopping {
            // Behind the stop; what is started then starts the sandbox again.
            self.0.turns.take(&tenant, async {}).await;
        }
        Ok(tenant)
    }

    /// Whose sandbox has this name, with its record.
    ///
    /// A session of somebody else and one that never was are answered alike.
    async fn named(&self, scope: &Scope, session: &str) -> Result<(Tenant, Record), Fault> {
        let candidates = match scope {
            Scope::Tenant(tenant) => vec![tenant.clone()],
            Scope::Local => {
                // Those that were opened here are the likely ones; the others may have been before a restart.
                let mut candidates = self.handles().tenants();
                let others = self.0.backend.tenants().await?;
                candidates.extend(others.into_iter().filter(|tenant| !candidates.contains(tenant)).collect::<Vec<_>>());
                candidates
            }
        };
        for tenant in candidates {
            match self.0.backend.record(&tenant).await {
                Ok(record) if record.session.as_deref() == Some(session) => return Ok((tenant, record)),
                Ok(_) | Err(BackendError::NotProvisioned(_)) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(Fault::NoSession)
    }

    /// How many handles and running jobs a tenant has.
    pub(crate) fn usage(&self, tenant: &Tenant) -> (usize, usize) {
        let active = self.0.jobs.active(tenant);
        (self.handles().count(tenant, clock::now(), active > 0), active)
    }

    /// Starts a command in the session's sandbox; returns when it runs.
    pub(crate) async fn start(&self, scope: &Scope, session: &str, submission: Submission) -> Result<Attached, Fault> {
        let tenant = self.tenant_of(scope, session).await?;
        let job = self.0.jobs.submit(&tenant, submission).map_err(Fault::Refused)?;
        job.started().await?;
        Ok(job)
    }

    /// Whether a command may go on when no call waits for it.
    pub(crate) fn check_background_jobs(&self) -> Result<(), Fault> {
        match self.0.backend.assurances().proof {
            Proof::Cgroup | Proof::PidNamespace | Proof::Reaper => Ok(()),
            Proof::None => Err(Fault::NoJobs),
        }
    }

    /// Reads a whole file. It is read to its end even if the caller goes away: what reads it would be killed, and nothing
    /// would prove what that leaves.
    pub(crate) async fn read_file(&self, scope: &Scope, session: &str, path: GuestPath) -> Result<Vec<u8>, Fault> {
        let tenant = self.tenant_of(scope, session).await?;
        let place = self.0.jobs.occupy(&tenant, &format!("read_file {}", path.path)).map_err(Fault::Refused)?;
        let this = self.clone();
        let work = async move {
            let _place = place;
            this.heed_file(this.0.backend.read_file(&tenant, &path, MOST_FILE_BYTES).await)
        };
        self.0.turns.detached(work).await.ok_or(BackendError::ShuttingDown)?
    }

    /// Writes a whole file, or appends to one. The write is finished even if the caller goes away: half a file would be worse.
    pub(crate) async fn write_file(
        &self,
        scope: &Scope,
        session: &str,
        path: GuestPath,
        content: Vec<u8>,
        how: Placing,
    ) -> Result<Written, Fault> {
        let tenant = self.tenant_of(scope, session).await?;
        let place = self.0.jobs.occupy(&tenant, &format!("write_file {}", path.path)).map_err(Fault::Refused)?;
        let this = self.clone();
        let work = async move {
            let _place = place;
            let backend = &this.0.backend;
            if how.parents {
                this.heed_file(backend.make_parents(&tenant, &path).await)?;
            }
            this.heed_file(if how.append {
                backend.append_file(&tenant, &path, content).await
            } else {
                backend.write_file(&tenant, &path, content).await
            })
        };
        // What becomes of it is heeded also where nobody waits any more.
        self.0.turns.detached(work).await.ok_or(BackendError::ShuttingDown)?
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
        self.end_with(self.0.backend.shutdown()).await
    }

    /// Ends every job, and leaves sandboxes running that outlive this process.
    pub(crate) async fn leave(&self) -> Result<(), BackendError> {
        self.end_with(self.0.backend.leave()).await
    }

    async fn end_with(&self, ending: impl Future<Output = Result<(), BackendError>>) -> Result<(), BackendError> {
        self.0.watch.abort();
        self.0.jobs.close().await;
        let ended = self.heed(ending.await);
        if ended.as_ref().is_err_and(|fault| fault.control_lost().is_some()) {
            // What waits for the processes that do not die would wait for ever; the word that they live comes first.
            return ended;
        }
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

    fn is_busy(&self, tenant: &Tenant) -> bool {
        self.0.jobs.active(tenant) > 0
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.0.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether anyone but the operator may use the sandbox.
fn allowed(tenant: &Tenant, record: &Record) -> Result<(), BackendError> {
    if record.disabled { Err(BackendError::Disabled(tenant.clone())) } else { Ok(()) }
}

/// The original's bound on a file, both ways.
pub(crate) const MOST_FILE_BYTES: u64 = 3 << 20;

#[cfg(test)]
mod tests;
