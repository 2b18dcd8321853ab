use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kit::Secret;
use sandbox::backend::Kind;
use tokio::sync::{Semaphore, mpsc};

use super::fallen::MISSED_AFTER;
use super::kept::{Event, Up};
use super::{EdgePlan, Happening, Outcome, Phase, Plan, Reading, Reread, Stamps, Supervisor, WorkerPlan};
use crate::admin::operator::{Asked, Asker};
use crate::admin::talk::Asking;
use crate::admin::words::{Answer, Refusal, Request};
use crate::app::words::{BeginEdge, BeginWorker, FromEdge, FromWorker, Keys, Upstream};
use crate::manager::Notify;
use crate::store::Loose;
use crate::worker::Terms;
use crate::worker::child::Program;
use crate::worker::handoff;

/// A running supervisor whose children are words alone.
fn running(serves_without_sandbox: bool) -> Supervisor {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("bound");
    let secret = || Secret::new("s");
    let begin = BeginEdge {
        verbosity: "info".to_owned(),
        limits: crate::edge::Config::default(),
        session_keys: Keys::one([0; 32]),
        store: "tokens.json".to_owned(),
        loose: Loose::Refuse,
        oauth: None,
        external: None,
        trust: None,
        backend: "linux".to_owned(),
        sandbox: Some(Upstream {
            address: ([127, 0, 0, 1], 1).into(),
            bearer: secret(),
            up: false,
            terms: Terms::default(),
        }),
        asks_sandbox: false,
        native: Vec::new(),
        tls: Vec::new(),
        client_ca: None,
        acme: None,
        audit: None,
    };
    let worker =
        BeginWorker { verbosity: "info".to_owned(), state: "/nowhere".into(), kind: Kind::Linux, secret: secret() };
    let plan = Plan {
        program: Program::open().expect("this program"),
        edge: EdgePlan {
            role: "__edge",
            listener: listener(),
            user: None,
            begin,
            tombstones: None,
            monitoring: None,
            redirect: None,
            bearer: None,
            audit: None,
        },
        worker: Some(WorkerPlan { role: "__worker", listener: listener(), begin: worker, lock: None }),
        credentials: "/nowhere/tokens.json".into(),
        oauth: None,
        acme: None,
        last_used: None,
        serves_without_sandbox,
        drain: Duration::ZERO,
        manager: Notify::none(),
        reread: Reread::new(|_| Reading { stamps: Stamps::default(), fresh: Err("not read here".to_owned()) }),
        stamps: Stamps::default(),
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

fn question(places: &Arc<Semaphore>) -> (Happening, OwnedFd) {
    let (operator, connection) = handoff::pair().expect("a pair");
    let place = Arc::clone(places).try_acquire_owned().expect("a place");
    (Happening::Asked(Asked::Sandboxes(Asker { connection, place })), operator)
}

#[test]
fn a_start_has_its_time_again_whenever_the_worker_says_that_it_goes_on() {
    let mut supervisor = running(true);
    supervisor.phase = Phase::Starting;
    let past = kit::clock::now();
    supervisor.patient_until = past;
    supervisor.handle(said(FromWorker::Disabled { tenants: Vec::new() }));
    assert_eq!(supervisor.patient_until, past, "another word gives none");
    supervisor.handle(said(FromWorker::Coming));
    assert!(supervisor.patient_until >= past + super::starting::START_WAIT);
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

#[tokio::test]
async fn an_operator_keeps_its_place_until_it_is_answered_or_the_worker_ends() {
    let mut supervisor = running(false);
    let places = Arc::new(Semaphore::new(2));
    let (first, _operator) = question(&places);
    let (second, _operator) = question(&places);
    supervisor.handle(first);
    supervisor.handle(second);
    assert_eq!(places.available_permits(), 0, "the worker has them");
    supervisor.handle(said(FromWorker::Done { id: 1 }));
    assert_eq!(places.available_permits(), 1);
    supervisor.handle(ended("worker", 1));
    assert_eq!(places.available_permits(), 2);
    let (third, operator) = question(&places);
    supervisor.handle(third);
    let answer = Asking::over(operator, &Request::List).await.expect("heard").answer().await.expect("answered");
    assert!(matches!(answer, Answer::Refused { why: Refusal::NoWorker, .. }), "{answer:?}");
}

#[tokio::test]
async fn a_reading_that_hangs_is_given_up_and_does_not_hold_up_the_next() {
    let mut supervisor = running(false);
    supervisor.reloads.most_reading = Duration::from_millis(10);
    let (go, hold) = std::sync::mpsc::channel::<()>();
    let hold = Mutex::new(Some(hold));
    supervisor.plan.reread = Reread::new(move |_| {
        let held = hold.lock().expect("whole").take();
        if let Some(held) = held {
            // Until the test ends.
            let _ = held.recv();
        }
        Reading { stamps: Stamps::default(), fresh: Err("read to its end".to_owned()) }
    });
    let places = Arc::new(Semaphore::new(1));
    for told in ["keeps its reader waiting", "read to its end"] {
        let (operator, connection) = handoff::pair().expect("a pair");
        let place = Arc::clone(&places).acquire_owned().await.expect("a place");
        supervisor.handle(Happening::Asked(Asked::Reload(Some(Asker { connection, place }))));
        let mut asking = Asking::over(operator, &Request::Reload).await.expect("heard");
        let happening = supervisor.next().await;
        supervisor.handle(happening);
        let answer = asking.answer().await.expect("answered");
        let Answer::Refused { message, .. } = answer else { panic!("{answer:?}") };
        assert!(message.contains(told), "{message}");
        // The second is quick however long the machine takes for it.
        supervisor.reloads.most_reading = Duration::from_secs(60);
    }
    drop(go);
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
