//! What is no file of bytes in the place of one of the state: named where it would be waited for, and never waited for.

use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::fake_worker::{FakeWorker, Manner};
use crate::process::{PATIENCE, Service, playground, run, text};

/// What lies there, and what it is called.
const KINDS: [(Odd, &str); 3] = [(Odd::Fifo, "a FIFO"), (Odd::Folder, "a directory"), (Odd::Device, "a device")];

#[derive(Clone, Copy, Debug)]
enum Odd {
    Fifo,
    Folder,
    Device,
}

/// A state with nothing in it but that.
fn state(place: &Path, file: &str, odd: Odd) {
    let state = playground::state::StateDir::open(&place.join("state")).expect("made");
    std::fs::create_dir(state.sandbox()).expect("made");
    let path = state.path().join(file);
    if path.exists() {
        std::fs::remove_file(&path).expect("removed");
    }
    match odd {
        Odd::Fifo => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made"),
        Odd::Folder => std::fs::create_dir(&path).expect("made"),
        Odd::Device => std::os::unix::fs::symlink("/dev/zero", &path).expect("linked"),
    }
}

#[test]
fn a_command_that_meets_what_is_no_file_in_the_state_names_it() {
    for (file, line, code) in [
        ("format.json", "token mint alice", 10),
        ("format.json", "check-config --workers workers.json", 5),
        ("lock", "user show alice", 10),
        ("tokens.json", "token mint alice", 1),
        ("tokens.json", "token list", 1),
        ("last-used.json", "token list", 0),
        ("operator.jsonl", "token mint alice", 0),
        ("oauth-state.json", "invite create alice", 1),
        ("oauth-state.json", "grant list", 1),
        ("session.key", "session-key rotate", 1),
        ("session.key", "check-config --workers workers.json", 5),
        ("sandbox/settings.json", "user show alice", 10),
        ("sandbox/backend", "user show alice", 1),
    ] {
        for (odd, _) in KINDS {
            let place = tempfile::tempdir().expect("a folder");
            FakeWorker::start(Manner::Answers).write(place.path());
            state(place.path(), file, odd);
            let mut command = playground(line.split(' '));
            command.args(["--state", "state"]).current_dir(place.path());
            let output = run(command);
            let told = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{file}, {odd:?}, {line}: {told}");
            assert!(told.contains(file), "{file}, {odd:?}, {line}: {told}");
        }
    }
}

#[test]
fn a_service_that_meets_what_is_no_file_in_the_state_names_it() {
    for (file, code) in [
        ("format.json", 10),
        ("lock", 10),
        ("tokens.json", 1),
        ("session.key", 10),
        ("tombstones.jsonl", 10),
        ("tombstones.2.jsonl", 10),
        ("audit.jsonl", 10),
        ("admin.sock", 10),
    ] {
        for (odd, kind) in KINDS {
            let mut service = serve(file, odd);
            let status = service.1.ended_within(PATIENCE);
            let told = service.1.rest();
            assert_eq!(status.code(), Some(code), "{file}, {odd:?}: {told}");
            assert!(told.contains(file), "{file}, {odd:?}: {told}");
            let is_no_file = [&format!("{kind} and no regular file"), "is not a regular file", "is no socket"];
            assert!(is_no_file.iter().any(|said| told.contains(*said)), "{file}, {odd:?}: {told}");
        }
    }
}

#[test]
fn what_a_service_makes_anew_or_can_do_without_does_not_keep_it_from_serving() {
    for file in ["operator.sock", "ballast", "last-used.json", "operator.jsonl", "tokens"] {
        for odd in [Odd::Fifo, Odd::Device] {
            let (_place, mut service) = serve(file, odd);
            service.ready();
            service.stop();
        }
    }
    let (_place, mut service) = serve("operator.sock", Odd::Folder);
    service.ended_within(PATIENCE);
    let told = service.rest();
    assert!(told.contains("operator.sock is a directory; move it away"), "{told}");
}

fn serve(file: &str, odd: Odd) -> (tempfile::TempDir, Service) {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    state(place.path(), file, odd);
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state", "state", "--workers", "workers.json"]);
    command.args(["--backend", "linux"]).current_dir(place.path());
    let service = Service::start(command);
    (place, service)
}
