//! A tenant's place in the service: running or not, and who may change that.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Tenant, tasks::Tasks};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::first_process::Running;
use super::layout::{Stage, step};
use super::live::Live;
use super::start::{begin, begin_direct};
use super::{Inner, quota};
use crate::backend::{BackendError, Command, CommandSpec, Direct, Started, Streams};

/// A tenant's place, running or not.
pub(super) struct Slot {
    /// One at a time opens, stops, makes or destroys; held across waits, which no mutex may be.
    gate: Arc<Semaphore>,
    live: Mutex<Option<Arc<Live>>>,
}

impl Slot {
    pub(super) async fn alone(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.gate).acquire_owned().await.ok()
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_ref().filter(|live| !live.is_dead()).map(Arc::clone)
    }

    /// The tenant as it ran last, be it dead.
    pub(super) fn last(&self) -> Option<Arc<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Arc::clone)
    }

    /// Waits until nothing of a dead tenant is kept, and forgets it. The caller holds the gate.
    pub(super) async fn settle(&self) -> Result<(), BackendError> {
        if let Some(last) = self.last() {
            last.rest().await?;
        }
        self.set(None);
        Ok(())
    }

    pub(super) fn set(&self, live: Option<Arc<Live>>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }
}

impl Inner {
    pub(super) fn slot(&self, tenant: &Tenant) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Slot { gate: Arc::new(Semaphore::new(1)), live: Mutex::new(None) }));
        Arc::clone(slot)
    }

    /// The slot of a tenant that has a sandbox; no request for a name that has none leaves anything behind.
    pub(super) fn known(&self, tenant: &Tenant) -> Result<Arc<Slot>, BackendError> {
        let known = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).map(Arc::clone);
        if let Some(slot) = known {
            return Ok(slot);
        }
        self.layout.tenant(tenant)?.meta()?;
        Ok(self.slot(tenant))
    }

    /// Who holds a tenant that does not run here.
    pub(super) async fn held(&self, tenant: &Tenant) -> Result<Option<String>, BackendError> {
        let home = self.layout.tenant(tenant)?;
        let looked = tokio::task::spawn_blocking(move || home.holder()).await;
        looked.map_err(|fault| step("look who holds a tenant")(io::Error::other(fault)))?
    }

    /// Does work to its end even if the caller stops waiting: nothing that is half started, stopped or made may be
    /// left to chance.
    pub(super) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (done, result) = oneshot::channel();
        self.tasks.start(async move {
            let _ = done.send(work.await);
        });
        result.await.map_err(|_closed| BackendError::ShuttingDown)?
    }

    /// The tenant's running sandbox, started if it is not running.
    pub(super) async fn live(self: &Arc<Self>, tenant: &Tenant) -> Result<Arc<Live>, BackendError> {
        let slot = self.known(tenant)?;
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        let (this, tenant) = (Arc::clone(self), tenant.clone());
        self.to_the_end(async move {
            let _alone = slot.alone().await;
            match slot.live() {
                Some(live) => Ok(live),
                None => {
                    slot.settle().await?;
                    this.launch(&tenant, &slot, Stage::Ready).await
                }
            }
        })
        .await
    }

    /// Starts a command. One whose caller does not wait for it is ended again: nobody could end it later.
    pub(super) async fn start(self: &Arc<Self>, tenant: &Tenant, spec: CommandSpec) -> Result<Started, BackendError> {
        let live = self.live(tenant).await?;
        self.claimed(begin(live, spec)).await
    }

    /// The same, of one whose streams somebody else reads and writes.
    pub(super) async fn start_direct(
        self: &Arc<Self>,
        tenant: &Tenant,
        spec: CommandSpec,
        streams: Streams,
    ) -> Result<Direct, BackendError> {
        let live = self.live(tenant).await?;
        self.claimed(begin_direct(live, spec, streams)).await
    }

    async fn claimed<T: Begun>(
        &self,
        begin: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (done, started) = oneshot::channel();
        let (tasks, runtime) = (self.tasks.clone(), Handle::current());
        self.tasks.start(async move {
            let begun = begin.await.map(|started| Unclaimed { started: Some(started), tasks, runtime });
            let _ = done.send(begun);
        });
        let mut begun = started.await.map_err(|_closed| BackendError::ShuttingDown)??;
        begun.started.take().ok_or(BackendError::ShuttingDown)
    }

    /// Starts a tenant's sandbox. The caller holds the slot's gate and does not stop half-way.
    pub(super) async fn launch(
        self: &Arc<Self>,
        tenant: &Tenant,
        slot: &Slot,
        stage: Stage,
    ) -> Result<Arc<Live>, BackendError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(BackendError::ShuttingDown);
        }
        let (this, name) = (Arc::clone(self), tenant.clone());
        let started = tokio::task::spawn_blocking(move || this.start_first_process(&name, stage)).await;
        let begun = started.map_err(|fault| step("start a sandbox")(io::Error::other(fault)))??;
        let Running { mut launched, cgroup, kept, egress, proxy, quota } = begun;
        let deadline = self.config.kill_deadline;
        let listeners = std::mem::take(&mut launched.listeners);
        let live = Live::adopt(tenant.clone(), launched, Some(cgroup), Some(kept), deadline, egress, quota)
            .map_err(step("start a sandbox"))?;
        self.tasks.start(Arc::clone(&live).run(proxy.map(|proxy| proxy.serve(listeners))));
        if live.quota.is_some() {
            self.tasks.start(quota::watch(Arc::clone(&live)));
        }
        slot.set(Some(Arc::clone(&live)));
        // A shutdown that began meanwhile did not see this tenant.
        if self.closing.load(Ordering::Acquire) {
            live.end().await?;
            return Err(BackendError::ShuttingDown);
        }
        Ok(live)
    }
}

/// A command that runs, with its streams.
trait Begun: Send + 'static {
    fn command(self) -> Box<dyn Command>;
}

impl Begun for Started {
    fn command(self) -> Box<dyn Command> {
        self.command
    }
}

impl Begun for Direct {
    fn command(self) -> Box<dyn Command> {
        self.command
    }
}

/// A command on the way to whoever asked for it; lost on the way, it is ended.
struct Unclaimed<T: Begun> {
    started: Option<T>,
    tasks: Tasks,
    runtime: Handle,
}

impl<T: Begun> Drop for Unclaimed<T> {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            let _entered = self.runtime.enter();
            self.tasks.start(async move {
                if let Err(fault) = started.command().kill().await {
                    tracing::error!(%fault, "a command that nobody waited for does not die");
                }
            });
        }
    }
}
