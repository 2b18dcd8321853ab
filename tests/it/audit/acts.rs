//! What operators do is on record beside what they have changed.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{Service, playground, run, text};

/// Each act, with its tenant and how many credentials it names.
fn acts(folder: &Path) -> Vec<(String, String, usize)> {
    let record = fs::read_to_string(folder.join("operator.jsonl")).unwrap_or_default();
    let lines = record.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let acts = lines.filter(|line| line.get("act").is_some()).map(|line| {
        assert_eq!(line["by"]["uid"], rustix::process::getuid().as_raw(), "{line}");
        let told = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (told("act"), told("tenant"), line["credentials"].as_array().map_or(0, Vec::len))
    });
    acts.collect()
}

fn verb(place: &Path, arguments: &[&str]) -> Output {
    let mut command = playground(arguments);
    command.current_dir(place).env("PLAYGROUND_STATE", "state");
    run(command)
}

fn done(place: &Path, arguments: &[&str]) -> String {
    let output = verb(place, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

fn act(act: &str, tenant: &str, credentials: usize) -> (String, String, usize) {
    (act.to_owned(), tenant.to_owned(), credentials)
}

#[test]
fn each_change_is_on_record_where_it_was_made_and_no_secret_is() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    let state = place.join("state");
    let minted = done(place, &["token", "mint", "alice", "--catalogue", "native"]);
    let id = |at: usize| {
        let listed = done(place, &["token", "list"]);
        listed.lines().nth(at).and_then(|line| line.split('\t').next()).expect("an id").to_owned()
    };
    let rotated = done(place, &["token", "rotate", &id(0), "--grace", "0"]);
    done(place, &["token", "revoke", &id(0)]);
    done(place, &["token", "revoke", "--expired"]);
    done(place, &["session-key", "rotate"]);
    let expected = [
        act("token mint", "alice", 1),
        act("token rotate", "alice", 2),
        act("token revoke", "", 1),
        act("session-key rotate", "", 0),
    ];
    assert_eq!(acts(&state), expected, "a revocation of nothing is none");
    let raw = fs::read_to_string(state.join("operator.jsonl")).expect("text");
    assert!(!raw.contains(&minted) && !raw.contains(&rotated), "{raw}");
    assert_eq!(done(place, &["audit", "acts", "--tenant", "alice"]).lines().count(), 2);
    assert!(done(place, &["audit", "verify"]).contains("5 lines in 1 files of "));
    fs::write(state.join("operator.jsonl"), raw.replacen("alice", "malic", 1)).expect("written");
    let found = verb(place, &["audit", "verify"]);
    assert_eq!(found.status.code(), Some(5), "{found:?}");
    assert!(text(&found.stdout).contains("operator.jsonl:2: changed: line 2"), "{found:?}");
}

#[test]
fn a_store_and_a_list_elsewhere_have_the_record_beside_them() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    FakeWorker::start(Manner::Answers).write(place);
    fs::create_dir(place.join("elsewhere")).expect("made");
    done(place, &["token", "mint", "bob", "--catalogue", "native", "--tokens", "elsewhere/tokens.json"]);
    assert_eq!(acts(&place.join("elsewhere")), [act("token mint", "bob", 1)]);
    let add = ["worker", "add", "bob", "127.0.0.1:9", "--workers", "workers.json", "--token-file", "b.key"];
    done(place, &[&add[..], &["--new-token"]].concat());
    done(place, &["worker", "remove", "bob", "--workers", "workers.json"]);
    assert_eq!(acts(place), [act("worker add", "bob", 0), act("worker remove", "bob", 0)]);
    assert!(!place.join("state/operator.jsonl").exists());
}

#[test]
fn a_reload_that_changes_something_is_on_record() {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = Service::start(super::command(place.path(), ""));
    service.ready();
    done(place.path(), &["reload"]);
    assert_eq!(acts(&place.path().join("state")), [], "nothing was changed");
    let file = fs::read_to_string(place.path().join("p.toml")).expect("text");
    fs::write(place.path().join("p.toml"), format!("{file}[limits]\ntenant_rate = 7\n")).expect("written");
    // Either it or the service itself has seen the change first.
    if !done(place.path(), &["reload"]).is_empty() {
        assert_eq!(acts(&place.path().join("state")), [act("reload", "", 0)]);
    }
    service.stop();
}

#[test]
fn what_cannot_be_recorded_is_done_and_told() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700)
        .create(place.join("state"))
        .expect("made");
    fs::create_dir(place.join("state/operator.jsonl")).expect("made");
    let minted = verb(place, &["token", "mint", "alice", "--catalogue", "native"]);
    assert_eq!(minted.status.code(), Some(0));
    assert!(text(&minted.stderr).contains("warning: this was done, but it is not on record"), "{minted:?}");
    assert_eq!(done(place, &["token", "list"]).lines().count(), 1);
}
