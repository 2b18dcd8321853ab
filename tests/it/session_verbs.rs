//! `playground session`: what it shows of a running service, and what it ends.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{Service, playground, run, text};

fn session(place: &Path, words: &[&str]) -> Output {
    let mut command = playground(["session"]);
    command.args(words).args(["--state", "state"]).current_dir(place);
    run(command)
}

fn serve(place: &Path) -> Service {
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state", "state", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json", "--backend", "jail"]).current_dir(place);
    Service::start(command)
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

#[test]
fn a_session_is_listed_ended_and_on_record_as_an_act() {
    let worker = FakeWorker::start(Manner::Answers);
    let place = tempfile::tempdir().expect("a folder");
    worker.write(place.path());
    let mut service = serve(place.path());
    let address = service.ready();
    let none = session(place.path(), &["list"]);
    assert_eq!((none.status.code(), text(&none.stdout)), (Some(0), String::new()));
    let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
    let id = opened.head.get("mcp-session-id").expect("an opened session").clone();
    let with = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", "2025-06-18")];
    assert_eq!(post(address, "/", Some(PUBLIC), &with, LIST).status, 200);

    let said = text(&session(place.path(), &["list"]).stdout);
    let columns: Vec<_> = said.trim_end().split('\t').collect();
    assert_eq!(columns.len(), 10, "{said}");
    assert_eq!((columns[1], columns[3], columns[4], columns[5]), ("alice", "t 1", "127.0.0.1", "native"), "{said}");
    assert!(!said.contains(&id) && !said.contains(PUBLIC) && !said.contains("worker-session"), "{said}");
    let json: Value = serde_json::from_slice(&session(place.path(), &["list", "--json"]).stdout).expect("one object");
    assert_eq!((&json["v"], &json["sessions"][0]["id"]), (&1.into(), &columns[0].into()));
    assert_eq!(text(&session(place.path(), &["list", "--tenant", "bob"]).stdout), "");

    let mut status = playground(["status", "--state", "state", "--tokens", "tokens.json"]);
    status.current_dir(place.path());
    let shown = text(&run(status).stdout);
    assert!(shown.contains(&format!("session\t{}\talice\t", columns[0])), "{shown}");

    let ended = session(place.path(), &["end", columns[0]]);
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), format!("ended {} of alice\n", columns[0])));
    assert_eq!(post(address, "/", Some(PUBLIC), &with, LIST).status, 404);
    let again = session(place.path(), &["end", columns[0]]);
    assert_eq!(again.status.code(), Some(6), "{again:?}");
    assert!(text(&again.stderr).contains("no live session of this edge is called so"), "{again:?}");
    assert_eq!(session(place.path(), &["end", "s-1"]).status.code(), Some(2));

    let acts = std::fs::read_to_string(place.path().join("state/operator.jsonl")).expect("there are acts");
    let act: Value = serde_json::from_str(acts.lines().last().expect("one")).expect("JSON");
    assert_eq!(
        (&act["act"], &act["tenant"], &act["what"]),
        (&"session end".into(), &"alice".into(), &serde_json::json!([columns[0]]),)
    );
    assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200, "nobody is kept out");
    service.stop();
}

#[test]
fn without_a_service_there_is_nobody_to_ask() {
    let place = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
        .create(place.path().join("state"))
        .expect("made");
    let output = session(place.path(), &["list"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("no service runs on this state"), "{output:?}");
}
