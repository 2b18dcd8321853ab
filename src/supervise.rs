//! The supervisor: it holds the listeners, starts the edge and the sandbox worker, and keeps them running.
//!
//! It parses nothing that came over a network. What it reads comes from its own children, over their control sockets,
//! and from the operator's socket. It promises that a child that falls is started again with its listener, so clients
//! wait in the kernel instead of being refused; that a child that said a restart would be wrong stays down; and that no
//! child outlives it: their control sockets end with this process, even by SIGKILL.
//!
//! ```text
//!   start ── both ready ──> run ── signal ──> stop edge (drain) ──> stop worker ──> Stopped
//!     └─ a fault ─> fault     └─ hopeless ──> the same, with the reason
//!                                         second signal at any point ──> kill both ──> Cut
//! ```

mod fallen;
mod files;
mod grants;
mod kept;
mod operators;
mod outcome;
mod plan;
mod record;
mod reload;
mod renewal;
mod stamps;
mod starting;
mod stopping;
mod telling;
mod used;

use std::time::Instant;

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::mpsc;

use crate::admin::operator::Asked;
use crate::app::words::{Down, FromEdge, FromWorker, ToEdge};
use crate::oauth::keeper::Unkept;
use crate::oauth::state::Change;
use crate::signal::StopSignals;
use crate::worker::restart::Policy;
use grants::Grants;
use kept::{Event, Kept, Up};
use operators::Operators;
use record::Recorded;
use reload::Reloads;

pub use outcome::Outcome;
pub use plan::{EdgePlan, Plan, WorkerPlan};
pub use reload::{Fresh, Reading, Reread};
pub use stamps::Stamps;

/// What the children said when they were ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Tenants with a sandbox; none where the host cannot isolate or no sandbox is wanted.
    pub sandboxes: Option<usize>,
}

/// A running service.
#[derive(Debug)]
pub struct Supervisor {
    plan: Plan,
    edge: Kept,
    worker: Kept,
    events: mpsc::Receiver<Event>,
    tell: mpsc::Sender<Event>,
    asked: mpsc::Receiver<Asked>,
    operators: Operators,
    sandboxes: Option<usize>,
    /// Tenants whom the worker would refuse all that they ask.
    disabled: Vec<Tenant>,
    reloads: Reloads,
    /// Where clients log in themselves.
    grants: Option<Grants>,
    noting: used::Noting,
    phase: Phase,
    /// While it starts: until when the children are waited for.
    patient_until: Instant,
    verdict: Option<Outcome>,
    /// A fault that a child told before it ended, for the message.
    told: Option<String>,
    control_lost: bool,
    /// What the edge has heard of the worker; before it has, it refuses calls.
    edge_sees_worker: bool,
    /// When the edge is to be told that the worker is gone. Until then calls wait for it in the listener's backlog.
    worker_missed: Option<Instant>,
    pulse: telling::Pulse,
    /// What the service manager is told of a service that is as it should be.
    serving: String,
    told_status: String,
    /// Why the last reload was none.
    reload_fault: Option<String>,
    recorded: Recorded,
    /// Also once the worker has been given up.
    supervises_worker: bool,
    tasks: Tasks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Stopping,
}

#[derive(Debug)]
enum Happening {
    Event(Event),
    Asked(Asked),
    Due,
}

impl Supervisor {
    /// Starts the children and waits until they are ready. `asked` brings the operator's questions.
    ///
    /// # Errors
    /// With how it ended, when it could not start or a signal came first.
    pub async fn start(
        plan: Plan,
        asked: mpsc::Receiver<Asked>,
        signals: &mut StopSignals,
    ) -> Result<(Self, Readiness), Outcome> {
        let mut supervisor = Self::new(plan, asked);
        match supervisor.until_ready(signals).await {
            Ok(()) => {
                let readiness = Readiness { sandboxes: supervisor.sandboxes };
                Ok((supervisor, readiness))
            }
            Err(outcome) => Err(supervisor.stop(outcome, signals).await),
        }
    }

    fn new(plan: Plan, asked: mpsc::Receiver<Asked>) -> Self {
        let tasks = Tasks::new();
        let (tell, events) = mpsc::channel(MOST_EVENTS);
        Self {
            supervises_worker: plan.worker.is_some(),
            grants: plan.oauth.clone().map(|file| Grants::start(file, &tasks)),
            reloads: Reloads::new(plan.stamps.clone()),
            noting: used::Noting::default(),
            recorded: Recorded::new(plan.edge.audit.clone()),
            plan,
            edge: Kept::new("edge", Policy::EDGE),
            worker: Kept::new("worker", Policy::WORKER),
            events,
            tell,
            asked,
            operators: Operators::default(),
            sandboxes: None,
            disabled: Vec::new(),
            phase: Phase::Starting,
            patient_until: kit::clock::now() + starting::START_WAIT,
            verdict: None,
            told: None,
            control_lost: false,
            edge_sees_worker: false,
            worker_missed: None,
            pulse: telling::Pulse::default(),
            serving: String::new(),
            told_status: String::new(),
            reload_fault: None,
            tasks,
        }
    }

    /// Keeps the children running until a signal, or until going on would be wrong.
    pub async fn run(mut self, signals: &mut StopSignals) -> Outcome {
        loop {
            tokio::select! {
                happening = self.next() => self.handle(happening),
                () = signals.next() => return self.stop(Outcome::Stopped, signals).await,
            }
            self.tell_status();
            if let Some(outcome) = self.verdict.take() {
                return self.stop(outcome, signals).await;
            }
        }
    }

    /// The next thing that happens. Dropping the future loses nothing.
    async fn next(&mut self) -> Happening {
        let due = [
            self.edge.due(),
            self.worker.due(),
            self.worker_missed,
            self.reloads.due(),
            self.recorded.due(),
            self.pulse.due(),
        ];
        let due = due.into_iter().flatten().min();
        let wait = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(event) = self.events.recv() => Happening::Event(event),
            Some(asked) = self.asked.recv() => Happening::Asked(asked),
            () = wait => Happening::Due,
        }
    }

    /// Does what follows. It never waits, so nothing that happens is lost.
    fn handle(&mut self, happening: Happening) {
        match happening {
            Happening::Asked(Asked::Sandboxes(asker)) => self.ask_worker(asker),
            Happening::Asked(Asked::Edge(asker)) => self.ask_edge(asker),
            Happening::Asked(Asked::Reload(asker)) => self.reload(asker),
            Happening::Asked(Asked::TerminalGone) => self.verdict = Some(Outcome::Stopped),
            Happening::Due => self.due(kit::clock::now()),
            Happening::Event(Event::Said { generation, up: Up::Edge(word) }) => {
                if self.edge.is_current(generation) {
                    self.edge_said(word);
                }
            }
            Happening::Event(Event::Said { generation, up: Up::Worker(word) }) => {
                if self.worker.is_current(generation) {
                    self.worker_said(word);
                }
            }
            Happening::Event(Event::Ended { name, generation, status }) => self.ended(name, generation, status),
            Happening::Event(Event::Reread(reading)) => self.reread(*reading),
            Happening::Event(Event::Looked { changed }) => self.looked(changed),
            Happening::Event(Event::RecordLooked(found)) => self.looked_at_record(found),
        }
    }

    fn edge_said(&mut self, word: FromEdge) {
        match word {
            FromEdge::Ready => self.edge.ready(),
            FromEdge::Alive { round } => self.answered(true, round),
            FromEdge::Sees { worker } => self.edge_sees_worker = worker,
            FromEdge::Fault(fault) => self.told = Some(fault),
            FromEdge::Open { id, file } => self.open_store(id, file),
            FromEdge::Grant { id, change } => self.grant(id, *change),
            FromEdge::Reloaded { fault } => self.taken_up(fault),
            FromEdge::KeepAcme(kept) => self.keep_acme(*kept),
            FromEdge::TurnAudit => self.turn_audit(),
            FromEdge::Done { id } => self.operators.edge_is_done(id),
            FromEdge::Used { ids, hour } => self.used(ids, hour),
        }
    }

    fn worker_said(&mut self, word: FromWorker) {
        match word {
            FromWorker::Ready { tenants } => {
                self.sandboxes = Some(tenants);
                self.worker.ready();
                self.worker_missed = None;
                self.edge.say(Down::Edge(ToEdge::Worker { up: true }), Vec::new());
            }
            FromWorker::Disabled { tenants } => {
                self.disabled = tenants;
                self.tell_disabled();
            }
            FromWorker::Coming => self.worker_is_coming(),
            FromWorker::NoIsolation(why) if self.plan.serves_without_sandbox => {
                tracing::warn!("{why}; no sandbox is served, native workers are");
                self.give_up_worker();
            }
            FromWorker::NoIsolation(why) => self.verdict = Some(Outcome::Misconfigured(why)),
            FromWorker::Fault(fault) => self.told = Some(fault),
            FromWorker::Alive { round } => self.answered(false, round),
            FromWorker::Done { id } => self.operators.worker_is_done(id),
        }
    }

    fn grant(&mut self, id: u64, change: Change) {
        let Some(down) = self.edge.line() else { return };
        let begun = match &self.grants {
            Some(grants) => grants.ask(id, change, down),
            None => Err(Unkept::Fault),
        };
        if let Err(unkept) = begun {
            self.edge.say(Down::Edge(ToEdge::Granted { id, done: Err(unkept) }), Vec::new());
        }
    }

    fn tell_disabled(&mut self) {
        self.edge.say(Down::Edge(ToEdge::Disabled { tenants: self.disabled.clone() }), Vec::new());
    }

    fn has_worker(&self) -> bool {
        self.plan.worker.is_some()
    }
}

/// Children say little; more than this at once waits in their sockets.
const MOST_EVENTS: usize = 64;

#[cfg(test)]
mod tests;
