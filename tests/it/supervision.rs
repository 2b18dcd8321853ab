//! The processes of a service: how they start, fall, return and end.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::{delete, post};
use crate::process::{PATIENCE, Service, is_root, playground, program, skip};

/// A service of one native worker, with a state.
fn native(place: &Path, worker: &FakeWorker) -> Service {
    worker.write(place);
    let file = |name: &str| place.join(name).to_str().expect("text").to_owned();
    let state = place.join("state");
    Service::serve(
        &state,
        &["--backend", "jail", "--tokens", &file("tokens.json"), "--faculties-workers", &file("workers.json")],
    )
}

#[test]
fn a_signal_stops_the_service_and_leaves_nothing_running() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = tempfile::tempdir().expect("a folder");
        let mut service = native(place.path(), &FakeWorker::start(Manner::Answers));
        let address = service.ready();
        let family = service.family();
        assert!(!family.is_empty());
        service.signal(signal);
        assert_eq!(service.ended_within(PATIENCE).code(), Some(0), "{}", service.rest());
        assert!(family.iter().all(|member| member.gone_within(Duration::ZERO)), "they ended before it");
        assert!(TcpStream::connect(address).is_err(), "nobody listens");
    }
}

#[test]
fn a_second_signal_ends_the_service_at_once() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Hangs);
    let mut service = native(place.path(), &worker);
    let address = service.ready();
    let mut call = TcpStream::connect(address).expect("connected");
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {PUBLIC}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        INITIALIZE.len()
    );
    call.write_all(format!("{head}{INITIALIZE}").as_bytes()).expect("sent");
    worker.asked.recv_timeout(PATIENCE).expect("the call is at the worker");
    let family = service.family();
    service.signal(Signal::TERM);
    let said = service.line_with("stopping");
    assert!(said.contains("up to") && said.contains("second signal"), "{said}");
    let supervisor = crate::process::Watched::of(service.pid());
    // At the same moment it is the same signal: a service manager signals the process and its group.
    service.signal(Signal::TERM);
    assert!(!supervisor.gone_within(Duration::from_millis(300)), "one wish to stop is no wish to stop at once");
    service.signal(Signal::TERM);
    let status = service.ended_within(Duration::from_secs(3));
    assert_eq!(status.code(), Some(8), "{}", service.rest());
    assert!(family.iter().all(|member| member.gone_within(Duration::ZERO)));
}

#[test]
fn killing_the_supervisor_leaves_no_process_within_two_seconds() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = native(place.path(), &FakeWorker::start(Manner::Answers));
    service.ready();
    let family = service.family();
    service.signal(Signal::KILL);
    let began = kit::clock::now();
    for member in &family {
        let left = Duration::from_secs(2).saturating_sub(kit::clock::now().saturating_duration_since(began));
        assert!(member.gone_within(left), "process {} is left", member.id);
    }
}

#[test]
fn a_killed_edge_is_back_within_a_second() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = native(place.path(), &FakeWorker::start(Manner::Answers));
    let address = service.ready();
    for _ in 0..2 {
        let edge = service.child("__edge");
        edge.kill();
        assert!(edge.gone_within(PATIENCE));
        let began = kit::clock::now();
        assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200, "{}", service.rest());
        let took = kit::clock::now().saturating_duration_since(began);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    service.stop();
}

#[test]
fn a_session_outlives_the_edge_and_the_whole_service() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    let mut service = native(place.path(), &worker);
    let mut address = service.ready();
    let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    let session = opened.head.get("mcp-session-id").expect("a session").clone();
    let ping = |address| {
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-06-18")];
        post(address, "/", Some(PUBLIC), &headers, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
    };
    assert_eq!(ping(address).status, 200);
    let edge = service.child("__edge");
    edge.kill();
    assert!(edge.gone_within(PATIENCE));
    assert_eq!(ping(address).status, 200, "after the edge fell");
    service.stop();
    service = native(place.path(), &worker);
    address = service.ready();
    let answer = ping(address);
    assert_eq!(answer.status, 200, "after a restart: {answer:?}");
    service.stop();
}

#[test]
fn a_session_that_was_ended_stays_so_in_the_next_service_which_makes_its_record_small() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    let mut service = native(place.path(), &worker);
    let mut address = service.ready();
    let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    let session = opened.head.get("mcp-session-id").expect("a session").clone();
    let status = |address| {
        let headers = [("mcp-session-id", session.as_str())];
        post(address, "/", Some(PUBLIC), &headers, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).status
    };
    assert_eq!(delete(address, PUBLIC, &session).status, 204);
    service.stop();
    let record = ["tombstones.jsonl", "tombstones.2.jsonl"].map(|name| place.path().join("state").join(name));
    let length = || record.iter().map(|path| std::fs::metadata(path).expect("a record").len()).sum::<u64>();
    let expired = r#"{"tenant":"x","session":"AAAAAAAAAAAAAAAAAAAAAA","issued":1,"expires":2}"#;
    let mut file = std::fs::File::options().append(true).open(&record[0]).expect("a record");
    // What a client that ends a session a second leaves in a week is past a mebibyte.
    file.write_all(format!("{expired}\n").repeat(20_000).as_bytes()).expect("written");
    file.write_all(b"{\"tenant\":\"x\",\"sess").expect("written");
    assert!(length() > 1024 * 1024);
    service = native(place.path(), &worker);
    address = service.ready();
    let began = kit::clock::now();
    while length() > 1024 {
        assert!(kit::clock::now() - began < PATIENCE, "the record stays at {}", length());
        std::thread::yield_now();
    }
    for path in &record {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).expect("a record"));
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(status(address), 404, "the session stays ended");
    service.stop();
    service = native(place.path(), &worker);
    assert_eq!(status(service.ready()), 404, "in the next one too");
    service.stop();
}

#[test]
fn a_state_is_served_once_and_a_port_is_bound_once() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    let mut service = native(place.path(), &worker);
    let address = service.ready().to_string();
    let mut second = native(place.path(), &worker);
    assert_eq!(second.ended_within(PATIENCE).code(), Some(7));
    assert!(second.rest().contains("another playground serves the state"), "{}", second.rest());
    let elsewhere = tempfile::tempdir().expect("a folder");
    worker.write(elsewhere.path());
    let file = |name: &str| elsewhere.path().join(name).to_str().expect("text").to_owned();
    let flags = ["--tokens", &file("tokens.json"), "--faculties-workers", &file("workers.json"), "--bind", &address];
    let mut command = playground(["serve"]);
    command.args(flags);
    let mut third = Service::start(command);
    assert_eq!(third.ended_within(PATIENCE).code(), Some(1));
    assert!(third.rest().contains("--bind"), "{}", third.rest());
    service.stop();
}

#[test]
fn an_edge_that_cannot_begin_says_why() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    for (file, text, told) in [
        ("tokens.json", "{\"tokens\":", "tokens.json cannot be used"),
        ("workers.json", "{\"workers\":[]}", "workers.json:1:1"),
        ("not-a-certificate", "", "certificate"),
    ] {
        FakeWorker::start(Manner::Answers).write(place.path());
        std::fs::write(place.path().join(file), text).expect("written");
        let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
        command.args(["--faculties-workers", "workers.json", "--backend", "jail"]).current_dir(place.path());
        if file == "not-a-certificate" {
            command.args(["--tls-cert", file, "--tls-key", file]);
        }
        let mut service = Service::start(command);
        let status = service.ended_within(PATIENCE);
        assert!(matches!(status.code(), Some(1 | 10)), "{file}: {status}");
        assert!(service.rest().contains(told), "{file}: {}", service.rest());
    }
}

#[test]
fn started_as_root_the_edge_holds_no_privilege() {
    if !is_root() {
        return skip("the edge gives up root", "the tests do not run as root");
    }
    let place = tempfile::tempdir().expect("a folder");
    let mut service = native(place.path(), &FakeWorker::start(Manner::Answers));
    service.ready();
    let edge = service.child("__edge");
    let status = std::fs::read_to_string(format!("/proc/{}/status", edge.id)).expect("read");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for ids in [field("Uid:"), field("Gid:")] {
        assert!(ids.iter().all(|id| id != "0"), "{status}");
    }
    assert!(field("Groups:").is_empty(), "{status}");
    for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert!(field(set)[0].chars().all(|digit| digit == '0'), "{status}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    let environment = std::fs::read(format!("/proc/{}/environ", edge.id)).expect("read");
    assert!(environment.is_empty(), "no environment crosses");
    service.stop();
}

#[test]
fn what_was_open_when_the_service_started_reaches_no_child() {
    if !is_root() {
        return skip("inherited descriptors", "nobody but root can look into the edge");
    }
    let place = tempfile::tempdir().expect("a folder");
    let secret = place.path().join("secret");
    std::fs::write(&secret, "x").expect("write");
    FakeWorker::start(Manner::Answers).write(place.path());
    let mut command = program("/bin/sh");
    command.arg("-c").arg(
        r#"exec 9<"$1/secret"; exec "$2" serve --backend jail --bind 127.0.0.1:0 --state "$1/state" \
        --tokens "$1/tokens.json" --faculties-workers "$1/workers.json""#,
    );
    command.arg("sh").arg(place.path()).arg(env!("CARGO_BIN_EXE_playground")).stdin(std::process::Stdio::null());
    let mut service = Service::start(command);
    service.ready();
    let open = |id: u32| {
        let all = std::fs::read_dir(format!("/proc/{id}/fd")).expect("list");
        all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).any(|leads| leads == secret)
    };
    assert!(open(service.pid()), "the service itself was started with it");
    assert!(!open(service.child("__edge").id));
    service.stop();
}
