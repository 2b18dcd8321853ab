//! What the service manager is told of a running service, and whether its halves still answer.
//!
//! The manager ends a service that it does not hear from. It hears from this one only after each half that is there has
//! answered a question on its control socket, the sandbox worker after it has looked at its tenants. A half that is being
//! started again is the supervisor's own matter, as long as that does not take too long.

use std::time::Instant;

use super::starting::START_WAIT;
use super::{Phase, Supervisor};
use crate::app::words::{Down, ToEdge, ToWorker};

/// The question that is under way, and when the next is due.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    due: Option<Instant>,
    round: u64,
    edge: bool,
    worker: bool,
    /// Whether it was said that a half does not answer.
    complained: bool,
}

impl Pulse {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    fn awaits(&self) -> bool {
        self.edge || self.worker
    }
}

impl Supervisor {
    /// Tells the manager that the service is ready, in these words.
    pub fn serves(&mut self, what: &str) {
        what.clone_into(&mut self.serving);
        self.told_status = self.status();
        self.plan.manager.ready(&self.told_status);
        self.pulse.due = self.plan.manager.pulse().map(|_| kit::clock::now());
    }

    /// The same again, when a reload is over.
    pub(super) fn reload_told(&mut self, fault: Option<String>) {
        self.reload_fault = fault;
        self.tell_troubles();
        if self.phase == Phase::Running && !self.serving.is_empty() {
            self.told_status = self.status();
            self.plan.manager.ready(&self.told_status);
        }
    }

    pub(super) fn tell_status(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        let status = self.status();
        if status != self.told_status {
            self.plan.manager.status(&status);
            self.told_status = status;
        }
    }

    fn status(&self) -> String {
        let edge = (!self.edge.is_ready()).then_some("the edge is being started again");
        let worker = match (self.supervises_worker, self.has_worker()) {
            (true, false) if self.control_lost => Some("control of a command tree was lost, no sandbox is served"),
            (true, false) => Some("no sandbox is served"),
            (true, true) if !self.worker.is_ready() => Some("the sandbox worker is being started again"),
            (true, true) | (false, _) => None,
        };
        let reload = self.reload_fault.is_some().then_some("the last reload failed, as the log says");
        let parts = [Some(self.serving.as_str()), edge, worker, reload];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub(super) fn ask_if_due(&mut self, now: Instant) {
        if self.pulse.due.is_none_or(|due| now < due) {
            return;
        }
        self.pulse.due = self.plan.manager.pulse().map(|pause| now + pause);
        if self.pulse.awaits() {
            if !self.pulse.complained {
                let (edge, worker) = (self.pulse.edge, self.pulse.worker);
                tracing::error!(
                    edge,
                    worker,
                    "a half does not answer, and the service manager is not told that it does"
                );
                self.pulse.complained = true;
            }
            return;
        }
        self.pulse.round += 1;
        let round = self.pulse.round;
        if self.edge.is_ready() {
            self.edge.say(Down::Edge(ToEdge::Alive { round }), Vec::new());
            self.pulse.edge = true;
        }
        if self.worker.is_ready() {
            self.worker.say(Down::Worker(ToWorker::Alive { round }), Vec::new());
            self.pulse.worker = true;
        }
        let hangs =
            [&self.edge, &self.worker].iter().any(|kept| kept.starts_since(now).is_some_and(|it| it > START_WAIT));
        if !self.pulse.awaits() && !hangs {
            self.plan.manager.alive();
        }
    }

    pub(super) fn answered(&mut self, is_edge: bool, round: u64) {
        if round != self.pulse.round {
            return;
        }
        let asked = if is_edge { &mut self.pulse.edge } else { &mut self.pulse.worker };
        if std::mem::take(asked) && !self.pulse.awaits() {
            self.pulse.complained = false;
            self.plan.manager.alive();
        }
    }

    /// A half has ended, and will not answer.
    pub(super) fn answers_no_more(&mut self, is_edge: bool) {
        *(if is_edge { &mut self.pulse.edge } else { &mut self.pulse.worker }) = false;
    }
}
