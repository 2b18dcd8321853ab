//! `playground status`: a service's own account of itself, its problems first.

use std::path::Path;

use serde_json::Value;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service, playground, run, text};

fn status(place: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = playground(["status", "--state", "state", "--tokens", "tokens.json"]);
    command.args(more).current_dir(place);
    let output = run(command);
    (output.status.code(), text(&output.stdout))
}

fn serve(place: &Path) -> Service {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state", "state", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json", "--backend", "jail"]).current_dir(place);
    Service::start(command)
}

#[test]
fn a_running_service_shows_its_sessions_workers_and_tokens() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let mut service = serve(place.path());
    let address = service.ready();
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    worker.asked.recv_timeout(PATIENCE).expect("the worker was asked");
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert!(lines.contains(&"sessions\talice\tpublic\t1"), "{said}");
    assert!(
        lines.iter().any(|line| line.starts_with("worker\t127.0.0.1:") && line.ends_with(" of alice\tup")),
        "{said}"
    );
    assert!(lines.iter().any(|line| line.starts_with("calls\t0\tof ")), "{said}");
    let token = lines.iter().find_map(|line| line.strip_prefix("token\t")).expect("a token");
    assert!(!said.contains(PUBLIC), "never the secret");
    // The id that it shows is the one that a revocation takes.
    let id = token.split('\t').next().expect("an id");
    let mut command = playground(["token", "revoke", id, "--tokens", "tokens.json"]);
    command.current_dir(place.path());
    assert_eq!(run(command).status.code(), Some(0));
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 401);
    let (_, said) = status(place.path(), &["--json"]);
    let object: Value = serde_json::from_str(&said).expect("one object");
    assert_eq!(
        (&object["v"], &object["running"], &object["tokens"]),
        (&1.into(), &true.into(), &Value::Array(Vec::new()))
    );
    service.stop();
}

#[test]
fn what_is_wrong_stands_first() {
    let place = tempfile::tempdir().expect("a folder");
    // Nobody listens at this worker's address.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("an address").port();
    crate::fake_worker::write(place.path(), port);
    let mut service = serve(place.path());
    let address = service.ready();
    // A call finds out, where the look of the start has not yet.
    post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.starts_with("problem\tno worker is believed to be there\n"), "{said}");
    assert!(
        said.contains(&format!("problem\tworker 127.0.0.1:{port} of alice is not believed to be there\n")),
        "{said}"
    );
    service.stop();
}

#[test]
fn without_a_service_the_tokens_are_shown_and_that_nobody_answers() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let (code, said) = status(place.path(), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.starts_with("problem\tno service answers at the admin socket of this state\ntoken\t"), "{said}");
}
