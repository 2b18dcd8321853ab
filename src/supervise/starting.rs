//! The start of the children: how each is started, what it is told first, and the wait until they are ready.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use super::kept::Up;
use super::{Outcome, Phase, Supervisor};
use crate::app::words::{Down, FromEdge, FromWorker, Handed, ToEdge, ToWorker};
use crate::signal::StopSignals;
use crate::worker::child::StartError;

impl Supervisor {
    pub(super) async fn until_ready(&mut self, signals: &mut StopSignals) -> Result<(), Outcome> {
        if self.plan.worker.is_some() {
            self.start_worker().map_err(|fault| Outcome::Fell(kit::chain(&fault)))?;
        }
        self.start_edge().map_err(|fault| Outcome::Fell(kit::chain(&fault)))?;
        self.patient_until = kit::clock::now() + START_WAIT;
        while !self.is_ready() {
            let deadline = self.patient_until;
            tokio::select! {
                happening = self.next() => self.handle(happening),
                () = signals.next() => return Err(Outcome::Stopped),
                () = tokio::time::sleep_until(deadline.into()) => {
                    let late = if self.edge.is_ready() { "worker" } else { "edge" };
                    return Err(Outcome::Fell(format!("the {late} was not ready within {} s", START_WAIT.as_secs())));
                }
            }
            if let Some(outcome) = self.verdict.take() {
                return Err(outcome);
            }
        }
        self.phase = Phase::Running;
        Ok(())
    }

    /// The worker has not come up yet, and does what it can.
    pub(super) fn worker_is_coming(&mut self) {
        let now = kit::clock::now();
        self.worker.goes_on(now);
        if self.phase == Phase::Starting {
            self.patient_until = now + START_WAIT;
            self.plan.manager.goes_on("starting: bringing up the sandboxes that are there");
        }
    }

    /// Whether the next call will be answered by whom it is for.
    pub(super) fn is_ready(&self) -> bool {
        let worker =
            (self.worker.is_ready() && self.edge_sees_worker) || self.worker.is_hopeless() || !self.has_worker();
        self.edge.is_ready() && worker
    }

    pub(super) fn start_edge(&mut self) -> Result<(), Fault> {
        let edge = &self.plan.edge;
        let mut begin = edge.begin.clone();
        if let Some(sandbox) = begin.sandbox.as_mut()
            && self.supervises_worker
        {
            sandbox.up = self.worker.is_ready() || self.worker_missed.is_some();
        }
        let tombstones = edge.tombstones.iter().flatten().map(|descriptor| (Handed::Tombstones, descriptor));
        let monitoring = edge.monitoring.iter().map(|descriptor| (Handed::Monitoring, descriptor));
        let redirect = edge.redirect.iter().map(|descriptor| (Handed::Redirect, descriptor));
        let bearer = edge.bearer.iter().map(|descriptor| (Handed::Bearer, descriptor));
        let (mut with, mut descriptors) = (Vec::new(), Vec::new());
        for (what, descriptor) in tombstones.chain(monitoring).chain(redirect).chain(bearer) {
            with.push(what);
            descriptors.push(descriptor.try_clone()?);
        }
        if let Some(record) = self.recorded.record() {
            let (current, before) = record.open().map_err(Fault::Audit)?;
            with.push(Handed::Audit);
            descriptors.push(current.into());
            if let Some(before) = before {
                with.push(Handed::AuditBefore);
                descriptors.push(before.into());
            }
        }
        let started = self.plan.program.start(edge.role, edge.listener.as_fd(), edge.user)?;
        self.edge.started(started, &self.tasks, self.tell.clone(), |received: FromEdge| Up::Edge(received));
        self.edge.say(Down::Edge(ToEdge::Begin { edge: Box::new(begin), with }), descriptors);
        self.tell_disabled();
        self.tell_troubles();
        Ok(())
    }

    pub(super) fn start_worker(&mut self) -> Result<(), Fault> {
        let Some(worker) = &self.plan.worker else { return Ok(()) };
        let descriptors = worker.lock.iter().map(OwnedFd::try_clone).collect::<Result<_, _>>()?;
        let started = self.plan.program.start(worker.role, worker.listener.as_fd(), None)?;
        self.worker.started(started, &self.tasks, self.tell.clone(), |received: FromWorker| Up::Worker(received));
        self.worker.say(Down::Worker(ToWorker::Begin(Box::new(worker.begin.clone()))), descriptors);
        Ok(())
    }
}

/// A child could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("copy a descriptor for a child")]
    Descriptor(#[from] std::io::Error),
    #[error("open the record of calls")]
    Audit(#[source] std::io::Error),
}

/// From one sign that it goes on to the next. A start sweeps what an earlier one left, which may be many tenants.
pub(super) const START_WAIT: Duration = Duration::from_secs(60);
