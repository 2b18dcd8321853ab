//! What follows when a child fell, and what is done when its time comes.

use std::time::Instant;

use super::{Outcome, Phase, Supervisor};
use crate::app::words::{Down, ToEdge};
use crate::worker::restart::Next;

impl Supervisor {
    pub(super) fn lost_control(&mut self, why: &str) {
        tracing::error!(why, "control of a command tree was lost; the sandbox worker is not started again");
        self.give_up_worker();
        if !self.plan.serves_without_sandbox {
            self.verdict = Some(Outcome::ControlLost);
        }
    }

    /// Without a worker to come, nobody shall wait for it: its listener goes too.
    pub(super) fn give_up_worker(&mut self) {
        self.worker.give_up();
        self.plan.worker = None;
        self.worker_missed = None;
        self.edge.say(Down::Edge(ToEdge::Worker { up: false }), Vec::new());
    }

    pub(super) fn fell(&mut self, is_edge: bool, status: &str, told: Option<String>) {
        let kept = if is_edge { &mut self.edge } else { &mut self.worker };
        let name = kept.name();
        match kept.fell(kit::clock::now()) {
            Next::After(wait) => {
                let told = told.unwrap_or_default();
                tracing::warn!(child = name, status, told, ?wait, "a child ended and is started again");
            }
            Next::Never => self.verdict = Some(Outcome::Fell(format!("the {name} is not started again"))),
        }
    }

    pub(super) fn due(&mut self, now: Instant) {
        self.ask_if_due(now);
        if self.worker_missed.is_some_and(|missed| missed <= now) {
            self.worker_missed = None;
            self.edge.say(Down::Edge(ToEdge::Worker { up: false }), Vec::new());
        }
        if self.phase == Phase::Stopping {
            return;
        }
        self.look_if_due(now);
        if self.worker.is_due(now)
            && let Err(fault) = self.start_worker()
        {
            let status = kit::chain(&fault);
            self.fell(false, &status, None);
        }
        if self.edge.is_due(now)
            && let Err(fault) = self.start_edge()
        {
            let status = kit::chain(&fault);
            self.fell(true, &status, None);
        }
    }
}
