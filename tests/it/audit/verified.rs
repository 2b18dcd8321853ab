//! What `audit verify` says of records that are gone, swapped, cut at their front or no files.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::command;
use crate::fake_worker::{INITIALIZE, PUBLIC};
use crate::http::post;
use crate::process::{Service, playground, run, text};

fn verb(place: &Path, arguments: &[&str]) -> Output {
    let mut command = playground(arguments);
    command.env("PLAYGROUND_STATE", "state").current_dir(place);
    run(command)
}

/// A state with both records, whose service has ended.
fn served() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let mut service = Service::start(command(place.path(), ""));
    assert_eq!(post(service.ready(), "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
    service.stop();
    let minted = verb(place.path(), &["token", "mint", "alice", "--catalogue", "native"]);
    assert_eq!(minted.status.code(), Some(0), "{minted:?}");
    let whole = verb(place.path(), &["audit", "verify"]);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    place
}

#[test]
fn a_record_that_is_gone_emptied_or_swapped_is_found() {
    type Change = fn(&Path, &Path);
    let cases: [(Change, i32, &str); 6] = [
        (|calls, _| fs::remove_file(calls).expect("removed"), 6, "missing: "),
        (|calls, _| fs::write(calls, "").expect("written"), 5, "audit.jsonl: cut: it has no line"),
        (|_, acts| fs::write(acts, "").expect("written"), 5, "operator.jsonl: cut: it has no line"),
        (
            |calls, acts| {
                let (one, other) = (fs::read(calls).expect("read"), fs::read(acts).expect("read"));
                fs::write(calls, other).and_then(|()| fs::write(acts, one)).expect("written");
            },
            5,
            "audit.jsonl:1: swapped: this line belongs to the record of acts",
        ),
        (
            |calls, acts| {
                // As an older version wrote them, without the name of the record.
                let acts_alone = fs::read_to_string(acts).expect("read");
                let older = acts_alone.lines().nth(1).map(|line| format!("{line}\n")).expect("an act");
                fs::write(calls, older).expect("written");
            },
            5,
            "audit.jsonl:1: swapped: this line belongs to the record of acts",
        ),
        (|calls, _| fs::rename(calls, calls.with_file_name("audit.1.jsonl")).expect("moved"), 6, "missing: "),
    ];
    for (at, (change, code, told)) in cases.into_iter().enumerate() {
        let place = served();
        let state = place.path().join("state");
        change(&state.join("audit.jsonl"), &state.join("operator.jsonl"));
        let found = verb(place.path(), &["audit", "verify"]);
        assert_eq!(found.status.code(), Some(code), "{at}: {found:?}");
        assert!(text(&found.stdout).contains(told), "{at}: {found:?}");
    }
}

#[test]
fn a_state_that_was_not_served_has_no_record_of_calls_and_that_is_no_fault() {
    let place = tempfile::tempdir().expect("a folder");
    assert_eq!(verb(place.path(), &["token", "mint", "alice"]).status.code(), Some(0));
    let found = verb(place.path(), &["audit", "verify"]);
    assert_eq!(found.status.code(), Some(0), "{found:?}");
    assert!(text(&found.stderr).contains("no service has run on this state"), "{found:?}");
}

#[test]
fn where_a_record_begins_is_told() {
    let place = served();
    let file = place.path().join("state/operator.jsonl");
    for _ in 0..3 {
        assert_eq!(verb(place.path(), &["token", "mint", "alice"]).status.code(), Some(0));
    }
    let whole = verb(place.path(), &["audit", "verify", "state/operator.jsonl"]);
    assert!(text(&whole.stdout).contains("the first is 1, the last is 5 with "), "{whole:?}");
    // A file that goes on says which hash it follows; no line of this one does.
    let rest: String = fs::read_to_string(&file).expect("text").split_inclusive('\n').skip(2).collect();
    fs::write(&file, rest).expect("written");
    let found = verb(place.path(), &["audit", "verify", "state/operator.jsonl"]);
    assert_eq!(found.status.code(), Some(5), "{found:?}");
    assert!(text(&found.stderr).contains("begins with line 3: the lines before it are not here"), "{found:?}");
}

#[test]
fn what_is_no_file_is_named_and_never_waited_for() {
    for (way, named) in [("a FIFO", true), ("a device", false)] {
        let place = served();
        for file in ["audit.jsonl", "operator.jsonl"] {
            let path = place.path().join("state").join(file);
            fs::remove_file(&path).expect("removed");
            if named {
                let made = rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                    0,
                );
                made.expect("made");
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
            }
        }
        for verb_of in
            [&["audit", "verify"][..], &["audit", "tail"], &["audit", "show", "--ref", "R"], &["audit", "acts"]]
        {
            let found = verb(place.path(), verb_of);
            assert_eq!(found.status.code(), Some(1), "{found:?}");
            assert!(text(&found.stderr).contains(&format!("it is {way} and no regular file")), "{found:?}");
        }
    }
}

#[test]
fn a_service_names_what_is_no_file_at_its_start() {
    for file in ["audit.jsonl", "tombstones.jsonl"] {
        let place = served();
        let path = place.path().join("state").join(file);
        fs::remove_file(&path).expect("removed");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
        let refused = run(command(place.path(), ""));
        assert_eq!(refused.status.code(), Some(10), "{file}: {refused:?}");
        assert!(
            text(&refused.stderr).contains(&format!("{file} is a FIFO and no regular file")),
            "{file}: {refused:?}"
        );
    }
}
