//! The original's command line for native workers, as its peers call it.

use std::path::Path;
use std::process::Stdio;

use crate::fake_worker::{FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground};

#[test]
fn the_originals_command_starts_without_a_state_and_proxies() {
    let place = tempfile::tempdir().expect("a folder");
    let worker = FakeWorker::start(Manner::Answers);
    worker.write(place.path());
    let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]);
    command.current_dir(place.path()).env("HOME", place.path()).stdout(Stdio::null());
    let mut service = Service::start(command);
    let address = service.ready();
    let answer = post(address, "/", Some(PUBLIC), &[("x-tenant", "mallory")], INITIALIZE);
    assert_eq!(answer.status, 200, "{answer:?}\n{}", service.rest());
    assert_eq!(answer.message()["result"]["serverInfo"]["name"], "fake");
    let session = answer.head.get("mcp-session-id").expect("a public session");
    assert_ne!(session, "worker-session", "the worker's own id stays inside");
    let asked = worker.asked.recv_timeout(PATIENCE).expect("the worker was asked");
    assert_eq!(asked.body, INITIALIZE, "byte for byte");
    let head = asked.head.to_ascii_lowercase();
    assert!(head.contains(&format!("authorization: bearer {INTERNAL}")), "{head}");
    assert!(!head.contains(PUBLIC) && !head.contains("x-tenant") && !head.contains("x-playground-tenant"), "{head}");
    assert_eq!(post(address, "/", Some("no-such-token"), &[], INITIALIZE).status, 401);
    assert_eq!(names_in(place.path()), ["tokens.json", "w.key", "workers.json"], "no state is left");
    service.stop();
}

#[test]
fn the_stores_environment_variable_still_names_it() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0"]);
    command.args(["--faculties-workers", "workers.json"]).env("PLAYGROUND_MCP_TOKENS", "tokens.json");
    command.current_dir(place.path());
    let mut service = Service::start(command);
    let address = service.ready();
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    service.stop();
}

fn names_in(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).expect("listed");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
