use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use kit::{Secret, Tenant};
use tokio::sync::{mpsc, oneshot};

use super::kept::{Event, Up};
use super::{EdgePlan, Happening, MISSED_AFTER, Outcome, Phase, Plan, Supervisor, WorkerPlan};
use crate::admin::operator::{Answer, Asked, PileWish, Refusal, Request};
use crate::app::words::{BeginEdge, BeginWorker, FromEdge, FromWorker, Key, Upstream};
use crate::identity::store::Loose;
use crate::worker::child::Program;

/// A running supervisor whose children are words alone.
fn running(serves_without_sandbox: bool) -> Supervisor {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("bound");
    let secret = || Secret::new("s");
    let begin = BeginEdge {
        verbosity: "info".to_owned(),
        limits: crate::edge::Config::default(),
        session_key: Key([0; 32]),
        store: "tokens.json".to_owned(),
        loose: Loose::Refuse,
        backend: "linux".to_owned(),
        sandbox: Some(Upstream { address: ([127, 0, 0, 1], 1).into(), bearer: secret(), up: false }),
        native: Vec::new(),
        tls: None,
    };
    let worker = BeginWorker { verbosity: "info".to_owned(), state: "/nowhere".into(), secret: secret() };
    let plan = Plan {
        program: Program::open().expect("this program"),
        edge: EdgePlan { role: "__edge", listener: listener(), user: None, begin, tombstones: None },
        worker: Some(WorkerPlan { role: "__worker", listener: listener(), begin: worker, lock: None }),
        credentials: "/nowhere/tokens.json".into(),
        serves_without_sandbox,
        drain: Duration::ZERO,
    };
    let (_ask, asked) = mpsc::channel(1);
    let mut supervisor = Supervisor::new(plan, asked);
    supervisor.edge.ready();
    supervisor.handle(said(FromWorker::Ready { tenants: 1 }));
    supervisor.phase = Phase::Running;
    supervisor
}

#[test]
fn a_service_is_ready_when_its_edge_has_heard_that_the_worker_is() {
    let mut supervisor = running(true);
    assert!(!supervisor.is_ready(), "the next call would be refused");
    let word = FromEdge::Sees { worker: true };
    supervisor.handle(Happening::Event(Event::Said { generation: 0, up: Up::Edge(word) }));
    assert!(supervisor.is_ready());
}

fn said(word: FromWorker) -> Happening {
    Happening::Event(Event::Said { generation: 0, up: Up::Worker(word) })
}

fn ended(name: &'static str, code: i32) -> Happening {
    Happening::Event(Event::Ended { name, generation: 0, status: Ok(ExitStatus::from_raw(code << 8)) })
}

fn question() -> (Happening, oneshot::Receiver<Answer>) {
    let (answer, answered) = oneshot::channel();
    let request = Request::Create { tenant: Tenant::parse("me").expect("a tenant"), pile: PileWish::None };
    (Happening::Asked(Asked { request, answer }), answered)
}

#[test]
fn a_worker_that_lost_control_is_never_started_again() {
    let mut alone = running(false);
    alone.handle(ended("worker", 11));
    assert_eq!(alone.verdict, Some(Outcome::ControlLost));
    let mut beside = running(true);
    beside.handle(ended("worker", 11));
    assert_eq!(beside.verdict, None, "native tenants are still served");
    assert!(beside.worker.is_hopeless() && beside.worker.due().is_none());
    assert!(beside.plan.worker.is_none(), "nobody waits at its listener");
    assert!(beside.control_lost, "the exit code tells it at the end");
}

#[test]
fn a_child_that_falls_is_started_again_and_one_misconfigured_ends_the_service() {
    for name in ["edge", "worker"] {
        for (code, again) in [(0, true), (1, true), (9, true), (10, false), (12, true)] {
            let mut supervisor = running(false);
            supervisor.handle(ended(name, code));
            let kept = if name == "edge" { &supervisor.edge } else { &supervisor.worker };
            assert_eq!(kept.due().is_some(), again, "{name} {code}");
            assert_eq!(matches!(supervisor.verdict, Some(Outcome::Misconfigured(_))), !again, "{name} {code}");
        }
    }
}

#[test]
fn the_edge_is_told_of_a_missing_worker_only_after_a_while() {
    let mut supervisor = running(false);
    let before = kit::clock::now();
    supervisor.handle(ended("worker", 1));
    let missed = supervisor.worker_missed.expect("a deadline");
    assert!(missed >= before + MISSED_AFTER);
    // Back in time: nothing is told at all.
    supervisor.handle(said(FromWorker::Ready { tenants: 1 }));
    assert_eq!(supervisor.worker_missed, None);
}

#[test]
fn a_question_in_the_air_when_the_worker_ends_has_an_unknown_outcome() {
    let mut supervisor = running(false);
    let (asked, mut answered) = question();
    supervisor.handle(asked);
    assert!(answered.try_recv().is_err(), "the worker has it");
    supervisor.handle(ended("worker", 1));
    let answer = answered.try_recv().expect("answered");
    assert!(matches!(answer, Answer::Refused { why: Refusal::OutcomeUnknown, .. }), "{answer:?}");
    let (asked, mut answered) = question();
    supervisor.handle(asked);
    let answer = answered.try_recv().expect("answered at once");
    assert!(matches!(answer, Answer::Refused { why: Refusal::NoWorker, .. }), "{answer:?}");
}

#[test]
fn what_an_earlier_child_said_or_did_is_ignored() {
    let mut supervisor = running(false);
    let status = Ok(ExitStatus::from_raw(11 << 8));
    supervisor.handle(Happening::Event(Event::Ended { name: "worker", generation: 7, status }));
    assert!(supervisor.worker.is_ready() && supervisor.verdict.is_none());
}

#[test]
fn without_isolation_only_a_service_with_native_tenants_goes_on() {
    for (serves, verdict) in [(true, None), (false, Some(Outcome::Misconfigured("why".to_owned())))] {
        let mut supervisor = running(serves);
        supervisor.handle(said(FromWorker::NoIsolation("why".to_owned())));
        assert_eq!(supervisor.verdict, verdict);
    }
}
