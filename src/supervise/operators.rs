//! Operators whom a child is to answer.
//!
//! Each has one of few places until the child says that it is done, or has ended.

use std::collections::HashMap;

use tokio::sync::OwnedSemaphorePermit;

use super::Supervisor;
use crate::admin::operator::Asker;
use crate::admin::talk;
use crate::admin::words::Refusal;
use crate::app::words::{Down, ToEdge, ToWorker};

#[derive(Debug, Default)]
pub(super) struct Operators {
    /// By their places.
    at_worker: HashMap<u64, OwnedSemaphorePermit>,
    at_edge: HashMap<u64, OwnedSemaphorePermit>,
    last: u64,
}

impl Operators {
    pub(super) fn worker_is_done(&mut self, id: u64) {
        self.at_worker.remove(&id);
    }

    pub(super) fn edge_is_done(&mut self, id: u64) {
        self.at_edge.remove(&id);
    }

    pub(super) fn worker_is_gone(&mut self) {
        self.at_worker.clear();
    }

    pub(super) fn edge_is_gone(&mut self) {
        self.at_edge.clear();
    }

    fn next(&mut self) -> u64 {
        self.last = self.last.wrapping_add(1);
        self.last
    }
}

impl Supervisor {
    pub(super) fn ask_worker(&mut self, asker: Asker) {
        if !self.worker.is_ready() {
            return self.answer_for(asker, Refusal::NoWorker, "there is no sandbox worker now; nothing was done");
        }
        let id = self.operators.next();
        self.operators.at_worker.insert(id, asker.place);
        // From here the worker alone holds the connection: if it ends, the operator sees that at once.
        self.worker.say(Down::Worker(ToWorker::Operate { id }), vec![asker.connection]);
    }

    pub(super) fn ask_edge(&mut self, asker: Asker) {
        if !self.edge.is_ready() {
            return self.answer_for(asker, Refusal::Failed, "the edge is being started; nothing was done");
        }
        let id = self.operators.next();
        self.operators.at_edge.insert(id, asker.place);
        self.edge.say(Down::Edge(ToEdge::Operate { id }), vec![asker.connection]);
    }

    /// Refuses in the place of a child that cannot be asked.
    fn answer_for(&self, asker: Asker, why: Refusal, message: &'static str) {
        self.tasks.start(async move {
            talk::refuse(asker.connection, why, message).await;
            drop(asker.place);
        });
    }
}
