//! How each child is started, and what it is told first.

use std::os::fd::{AsFd as _, OwnedFd};

use super::Supervisor;
use super::kept::Up;
use crate::app::words::{Down, FromEdge, FromWorker, Handed, ToEdge, ToWorker};
use crate::worker::child::StartError;

impl Supervisor {
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
        let (mut with, mut descriptors) = (Vec::new(), Vec::new());
        for (what, descriptor) in tombstones.chain(monitoring) {
            with.push(what);
            descriptors.push(descriptor.try_clone()?);
        }
        let started = self.plan.program.start(edge.role, edge.listener.as_fd(), edge.user)?;
        self.edge.started(started, &self.tasks, self.tell.clone(), |received: FromEdge| Up::Edge(received));
        self.edge.say(Down::Edge(ToEdge::Begin { edge: Box::new(begin), with }), descriptors);
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
}
