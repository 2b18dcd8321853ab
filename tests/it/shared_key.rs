//! Several services with one key file: each serves the sessions of the others, whatever happens to key and services.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use rustix::process::Signal;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::{post, try_post};
use crate::process::{PATIENCE, Service, playground, run, text};

const TAKEN_UP: &str = "session keys: others";

/// The folder of the services, with their store, the key file and the token of their worker.
struct Shared {
    place: tempfile::TempDir,
    worker: FakeWorker,
}

impl Shared {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let worker = FakeWorker::start(Manner::Answers);
        worker.write(place.path());
        let these = Self { place, worker };
        these.rotate(&[]);
        these
    }

    fn file(&self, name: &str) -> String {
        self.place.path().join(name).to_str().expect("text").to_owned()
    }

    fn rotate(&self, more: &[&str]) {
        let mut command = playground(["session-key", "rotate", "--file", &self.file("shared.key")]);
        command.args(more);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    /// An edge alone, with a state of its own and the keys in this file.
    fn edge(&self, state: &str, bind: SocketAddr, key: &str) -> Service {
        let worker = format!("127.0.0.1:{}", self.worker.port);
        let mut command = playground(["serve", "--only", "edge", "--backend", "jail", "--tenant-rate", "100000"]);
        command.args(["--bind", &bind.to_string(), "--worker", &worker, "--worker-token-file", &self.file("w.key")]);
        command.args(["--state", &self.file(state), "--tokens", &self.file("tokens.json")]);
        command.args(["--session-key-file", &self.file(key)]);
        Service::start(command)
    }

    fn reload(&self, state: &str) {
        let output = run(playground(["reload", "--state", &self.file(state)]));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

fn anywhere() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn open(address: SocketAddr) -> String {
    let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    opened.head.get("mcp-session-id").unwrap_or_else(|| panic!("no session: {opened:?}")).clone()
}

fn ping(address: SocketAddr, session: &str) -> u16 {
    try_ping(address, session).expect("an answer")
}

fn try_ping(address: SocketAddr, session: &str) -> std::io::Result<u16> {
    let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-06-18")];
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    try_post(address, "/", Some(PUBLIC), &headers, ping).map(|answer| answer.status)
}

#[test]
fn a_rotated_key_is_taken_up_by_running_services_and_seals_once_its_grace_is_over() {
    let shared = Shared::new();
    let (mut first, mut second) =
        (shared.edge("first", anywhere(), "shared.key"), shared.edge("second", anywhere(), "shared.key"));
    let (there, here) = (first.ready(), second.ready());
    let old = open(there);
    assert_eq!((ping(there, &old), ping(here, &old)), (200, 200));
    std::fs::copy(shared.file("shared.key"), shared.file("before.key")).expect("copied");
    let mut behind = shared.edge("behind", anywhere(), "before.key");
    let late = behind.ready();

    shared.rotate(&[]);
    for service in [&mut first, &mut second] {
        service.line_with(TAKEN_UP);
    }
    let graced = open(here);
    assert_eq!([there, here, late].map(|at| ping(at, &graced)), [200; 3], "it is only known yet");

    shared.rotate(&["--at-once"]);
    for service in [&mut first, &mut second] {
        service.line_with(TAKEN_UP);
    }
    let fresh = open(here);
    assert_eq!([there, here, late].map(|at| ping(at, &fresh)), [200, 200, 404], "it seals");
    assert_eq!([there, here, late].map(|at| ping(at, &old)), [200; 3], "the keys before it are kept");
    for service in [first, second, behind] {
        service.stop();
    }
}

/// Two edges behind a balancer that asks one after the other, and what its clients saw.
struct Balanced {
    edges: [SocketAddr; 2],
    sessions: RwLock<Vec<String>>,
    calls: AtomicUsize,
    over: AtomicBool,
    /// Whether the second is away, or was when a call to it began.
    away: AtomicBool,
    unanswered: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Balanced {
    /// Calls until it is over.
    fn call(&self) {
        while !self.over.load(Ordering::SeqCst) {
            let turn = self.calls.fetch_add(1, Ordering::SeqCst);
            let away = self.away.load(Ordering::SeqCst);
            if let Err(fault) = self.ask(turn, turn % 2) {
                self.unanswered.fetch_add(1, Ordering::SeqCst);
                if turn.is_multiple_of(2) || !(away || self.away.load(Ordering::SeqCst)) {
                    self.wrong.lock().expect("no panic").push(format!("call {turn}: {fault}"));
                } else if let Err(fault) = self.ask(turn, 0) {
                    self.wrong.lock().expect("no panic").push(format!("call {turn} at the other: {fault}"));
                }
            }
        }
    }

    /// Opens a session now and then, and uses each in its turn. A fault is a call that nobody answered.
    fn ask(&self, turn: usize, edge: usize) -> std::io::Result<()> {
        let address = self.edges[edge];
        let status = if turn % 20 < 2 {
            let opened = try_post(address, "/", Some(PUBLIC), &[], INITIALIZE)?;
            self.sessions.write().expect("no panic").extend(opened.head.get("mcp-session-id").cloned());
            opened.status
        } else {
            let sessions = self.sessions.read().expect("no panic");
            let session = sessions[turn % sessions.len()].clone();
            drop(sessions);
            try_ping(address, &session)?
        };
        if status != 200 {
            self.wrong.lock().expect("no panic").push(format!("call {turn} to edge {edge}: {status}"));
        }
        Ok(())
    }

    /// Lets so many calls more go by.
    fn more(&self, count: usize) {
        let until = self.calls.load(Ordering::SeqCst) + count;
        let began = kit::clock::now();
        while self.calls.load(Ordering::SeqCst) < until {
            assert!(kit::clock::now() - began < PATIENCE, "the clients go on");
            std::thread::yield_now();
        }
    }
}

#[test]
fn two_edges_behind_a_balancer_lose_no_call_to_a_rotation_and_only_those_under_way_to_a_kill() {
    let shared = Shared::new();
    let (mut first, mut second) =
        (shared.edge("first", anywhere(), "shared.key"), shared.edge("second", anywhere(), "shared.key"));
    let edges = [first.ready(), second.ready()];
    let balanced = Balanced {
        edges,
        sessions: RwLock::new(vec![open(edges[0]), open(edges[1])]),
        calls: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        away: AtomicBool::new(false),
        unanswered: AtomicUsize::new(0),
        wrong: Mutex::default(),
    };
    std::thread::scope(|clients| {
        // Whatever fails here must not leave them calling.
        let _over = Over(&balanced.over);
        for _ in 0..4 {
            clients.spawn(|| balanced.call());
        }
        balanced.more(250);
        shared.rotate(&["--grace", "3s"]);
        let seals = kit::clock::now() + Duration::from_secs(3);
        shared.reload("first");
        balanced.more(50);
        shared.reload("second");
        assert!(kit::clock::now() < seals, "both have read it within the grace");
        balanced.more(250);

        let family = second.family();
        balanced.away.store(true, Ordering::SeqCst);
        second.signal(Signal::KILL);
        second.ended_within(PATIENCE);
        assert!(family.iter().all(|member| member.gone_within(PATIENCE)));
        balanced.more(100);
        assert!(TcpListener::bind(edges[1]).is_ok(), "nobody listens");
        second = shared.edge("second", edges[1], "shared.key");
        second.ready();
        balanced.away.store(false, Ordering::SeqCst);
        balanced.more(400);
        while kit::clock::now() < seals {
            balanced.more(1);
        }
        balanced.more(100);
    });
    let wrong = balanced.wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{wrong:?}");
    let calls = balanced.calls.into_inner();
    assert!(calls >= 1000, "{calls}");
    assert!(balanced.unanswered.into_inner() > 0, "the kill was seen");
    for session in balanced.sessions.into_inner().expect("no panic") {
        assert_eq!(edges.map(|edge| ping(edge, &session)), [200, 200]);
    }
    first.stop();
    second.stop();
}

/// Ends the clients, however the test goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
