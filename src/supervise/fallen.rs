//! What follows when a child ended or fell, and what is done when its time comes.

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::{Outcome, Phase, Supervisor};
use crate::app::words::{Down, ToEdge};
use crate::worker::restart::{Ending, Next};

impl Supervisor {
    pub(super) fn ended(&mut self, name: &'static str, generation: u64, status: io::Result<ExitStatus>) {
        let is_edge = name == self.edge.name();
        let kept = if is_edge { &mut self.edge } else { &mut self.worker };
        if !kept.is_current(generation) {
            return;
        }
        let was_hopeless = kept.is_hopeless();
        kept.gone();
        self.answers_no_more(is_edge);
        if is_edge {
            self.operators.edge_is_gone();
            self.reload_broke_off();
        }
        let ending = status.as_ref().map_or(Ending::Fell, |status| Ending::of(*status));
        let status = status.map_or_else(|fault| fault.to_string(), |status| status.to_string());
        if !is_edge {
            self.worker_missed.get_or_insert(kit::clock::now() + MISSED_AFTER);
            self.operators.worker_is_gone();
        }
        if ending == Ending::ControlLost && !is_edge {
            self.control_lost = true;
        }
        if self.phase == Phase::Stopping || was_hopeless || self.verdict.is_some() {
            return;
        }
        let told = self.told.take();
        let why = told.clone().unwrap_or_else(|| format!("the {name} ended ({status})"));
        match (self.phase, ending) {
            (_, Ending::ControlLost) if !is_edge => self.lost_control(&why),
            (_, Ending::ControlLost | Ending::Misconfigured) => self.verdict = Some(Outcome::Misconfigured(why)),
            (Phase::Starting, Ending::Fell) => self.verdict = Some(Outcome::Fell(why)),
            (Phase::Running | Phase::Stopping, Ending::Fell) => self.fell(is_edge, &status, told),
        }
    }

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
        self.look_at_record_if_due(now);
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

/// A fallen worker is usually back sooner; clients of one that is not get an answer instead of waiting on.
pub(super) const MISSED_AFTER: Duration = Duration::from_secs(1);
