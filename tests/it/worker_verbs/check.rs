//! `playground worker check`, at workers that behave and at some that do not.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use kit::Secret;
use kit::http::Limits;
use kit::worker::{Call, Catalogue, Pending, Refused, Reply, Worker};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scripted::{Scripted, Tools};
use super::{place, worker};
use crate::fake_worker::INTERNAL;
use crate::process::{PATIENCE, Service, playground, text};

/// A folder whose list has this one worker, for bob.
fn listing(address: std::net::SocketAddr) -> tempfile::TempDir {
    let place = place();
    let list = format!(r#"{{"workers":[{{"tenant":"bob","address":"{address}","token_file":"w.key"}}]}}"#);
    std::fs::write(place.path().join("workers.json"), list).expect("written");
    place
}

fn check(place: &Path, more: &[&str]) -> Output {
    worker(place, &[&["check"], more].concat())
}

#[track_caller]
fn all_ended(worker: &Scripted) {
    let (opened, ended) = worker.sessions();
    assert!(opened > 0 && opened == ended, "{opened} opened, {ended} ended");
}

#[test]
fn a_good_worker_is_told_with_its_era_and_tools_and_left_without_a_session() {
    let there = Scripted::start(Tools::Good);
    let place = listing(there.address);
    let output = check(place.path(), &["bob", "--strict"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for what in [
        "it refuses a wrong token and none",
        "initialize 2025-06-18 with sessions; no server/discover",
        "1 tools, some 33 tokens: read_file\n",
    ] {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert!(!told.contains("error") && !told.contains("warn"), "{told}");
    all_ended(&there);
    assert!(!there.methods().contains(&"tools/call".to_owned()));
    assert!(!told.contains(INTERNAL) && !text(&output.stderr).contains(INTERNAL));
}

#[test]
fn a_worker_of_both_eras_is_read_in_the_modern_one() {
    struct Silent(Catalogue);
    impl Worker for Silent {
        fn catalogue(&self) -> &Catalogue {
            &self.0
        }
        fn call(&self, call: Call) -> Pending<'_, Result<Reply, Refused>> {
            Box::pin(async move { Err(Refused::UnknownTool(call.tool)) })
        }
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let place = listing(listener.local_addr().expect("an address"));
    let tools = json!([{ "name": "a.b", "description": "d", "inputSchema": { "type": "object" } }]);
    let catalogue = Catalogue::new("silent", "1", tools).expect("a catalogue");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let stopped = async { drop(stopped.await) };
        let worker = Arc::new(Silent(catalogue));
        runtime.block_on(kit::http::serve(listener, Secret::new(INTERNAL), worker, Limits::default(), stopped))
    });
    let output = check(place.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let bob = &told["workers"][0];
    assert_eq!((&told["v"], &bob["tenant"], &bob["up"]), (&json!(1), &json!("bob"), &json!(true)));
    assert_eq!(bob["eras"]["modern"], json!(["2026-07-28"]), "{bob}");
    assert_eq!((&bob["refuses"]["no_token"], &bob["refuses"]["wrong_token"]), (&json!(true), &json!(true)));
    assert_eq!(bob["tools"], json!(["a.b"]));
    let rules: Vec<_> = bob["findings"].as_array().expect("a list").iter().map(|finding| &finding["rule"]).collect();
    assert!(rules.contains(&&json!("name-dot")) && rules.contains(&&json!("annotations-none")), "{rules:?}");
    drop(stop);
    served.join().expect("no panic").expect("served");
}

#[test]
fn a_worker_that_lets_strangers_in_is_reported_and_left_without_their_sessions() {
    let there = Scripted::start(Tools::Good).without_door();
    let place = listing(there.address);
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let told = text(&output.stdout);
    assert!(
        told.contains("answers a call without a token with 200") && told.contains("a wrong token with 200"),
        "{told}"
    );
    assert_eq!(there.sessions(), (3, 3), "the edge's own, and one for each stranger");
}

#[test]
fn what_clients_refuse_is_told_with_the_clients_and_the_fix_and_counts_where_it_is_to() {
    let there = Scripted::start(Tools::Bad);
    let place = listing(there.address);
    let output = check(place.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stdout);
    assert!(
        told.contains("  error   tool memory_query: inputSchema: the inputSchema has `anyOf` at its top"),
        "{told}"
    );
    assert!(told.contains("Claude Code") && told.contains("move the alternatives into a property"), "{told}");
    assert_eq!(check(place.path(), &["--strict"]).status.code(), Some(5));
    all_ended(&there);
}

#[test]
fn a_list_is_followed_over_its_pages_and_not_in_a_circle() {
    let there = Scripted::start(Tools::Paged);
    let place = listing(there.address);
    let output = check(place.path(), &[]);
    assert!(text(&output.stdout).contains(": one, two, three\n"), "{output:?}");
    for (tools, told) in
        [(Tools::Circle, "the same cursor came twice"), (Tools::None, "the error -32601: no such method")]
    {
        let there = Scripted::start(tools);
        let place = listing(there.address);
        let output = check(place.path(), &[]);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(text(&output.stdout).contains(told), "{output:?}");
        all_ended(&there);
    }
}

#[test]
fn a_worker_that_falls_silent_is_given_up_and_its_session_ended() {
    let there = Scripted::start(Tools::Silent);
    let place = listing(there.address);
    let output = check(place.path(), &["--timeout", "1"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        text(&output.stdout).contains("within 1 s") || text(&output.stdout).contains("longer than 1 s"),
        "{output:?}"
    );
    all_ended(&there);
}

#[test]
fn a_check_that_is_interrupted_ends_its_session_first() {
    let there = Scripted::start(Tools::Silent);
    let place = listing(there.address);
    let mut command = playground(["worker", "check", "--workers", "workers.json", "--timeout", "600"]);
    command.current_dir(place.path());
    let mut service = Service::start(command);
    let began = kit::clock::now();
    while !there.methods().contains(&"tools/list".to_owned()) {
        assert!(kit::clock::now() - began < PATIENCE, "it was never asked: {:?}", there.methods());
        std::thread::yield_now();
    }
    service.signal(Signal::INT);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(8), "{}", service.rest());
    all_ended(&there);
}

#[test]
fn who_cannot_be_reached_or_does_not_know_its_own_token_is_told_beside_the_others() {
    let (there, other) = (Scripted::start(Tools::Good), Scripted::start(Tools::Good));
    let place = place();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("an address");
    let row =
        |tenant: &str, address, file| format!(r#"{{"tenant":"{tenant}","address":"{address}","token_file":"{file}"}}"#);
    let rows =
        [row("up", there.address, "w.key"), row("down", free, "w.key"), row("other", other.address, "other.key")];
    std::fs::write(place.path().join("workers.json"), format!(r#"{{"workers":[{}]}}"#, rows.join(",")))
        .expect("written");
    std::fs::write(place.path().join("other.key"), "o".repeat(32)).expect("written");
    let output = check(place.path(), &["--all"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let told = text(&output.stdout);
    assert!(told.contains("it cannot be reached") && told.contains("it refuses the token: 401"), "{told}");
    assert!(told.contains("1 tools"), "{told}");
    assert_eq!(check(place.path(), &["up"]).status.code(), Some(0));
    assert_eq!(check(place.path(), &["nobody"]).status.code(), Some(6));
    assert_eq!(other.sessions(), (0, 0));
}
