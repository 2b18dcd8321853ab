//! The credential store as the program treats it: born private, refused when broken, followed while it is served.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};

use playground::identity::store::Ledger;
use playground::store::Loose;

use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{Service, playground, program, run, text};

#[test]
fn a_store_is_born_private_under_an_open_umask() {
    let place = tempfile::tempdir().expect("a folder");
    let mut shell = program("/bin/sh");
    shell.args(["-c", "umask 000; exec \"$0\" token mint t1 --tokens \"$1\"", env!("CARGO_BIN_EXE_playground")]);
    let output = run({
        shell.arg(place.path().join("s.json"));
        shell
    });
    assert!(output.status.success(), "{}", text(&output.stderr));
    for entry in std::fs::read_dir(place.path()).expect("listed") {
        let entry = entry.expect("listed");
        assert_eq!(entry.metadata().expect("asked").mode() & 0o7777, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn every_token_that_commands_print_at_once_is_stored() {
    let place = tempfile::tempdir().expect("a folder");
    let store = place.path().join("s.json");
    let mint = |turn: usize| -> Child {
        let mut command = playground(["token", "mint", &format!("t{turn}"), "--tokens"]);
        command.arg(&store).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts")
    };
    let commands: Vec<Child> = (0..32).map(mint).collect();
    let mut printed = HashSet::new();
    for command in commands {
        let output = command.wait_with_output().expect("ended");
        assert!(output.status.success());
        let token = text(&output.stdout);
        printed.insert(token.split('_').nth(1).expect("an id").to_owned());
    }
    let listed = Ledger::at(&store, Loose::Refuse).list().expect("listed");
    assert_eq!(printed, listed.into_iter().map(|one| one.id.as_str().to_owned()).collect());
    assert_eq!(printed.len(), 32);
}

#[test]
fn a_store_that_cannot_be_written_stays_as_it_was_and_no_token_is_printed() {
    let place = tempfile::tempdir().expect("a folder");
    let store = place.path().join("s.json");
    let mint = |before: &str| {
        let mut shell = program("/bin/sh");
        let line = format!("{before} exec \"$0\" token mint t1 --tokens \"$1\"");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_playground")]).arg(&store);
        run(shell)
    };
    assert!(mint("").status.success());
    let first = std::fs::read(&store).expect("read");
    // Not a byte may be written to a file: each write fails, as on a full disk.
    let failed = mint("trap '' XFSZ; ulimit -f 0;");
    assert!(!failed.status.success() && failed.stdout.is_empty(), "{}", text(&failed.stdout));
    assert!(text(&failed.stderr).contains("s.json"), "{}", text(&failed.stderr));
    assert_eq!(std::fs::read(&store).expect("read"), first);
    assert!(mint("").status.success());
    assert_eq!(Ledger::at(&store, Loose::Refuse).list().expect("listed").len(), 2);
}

#[test]
fn a_broken_store_stops_the_start_and_is_named_with_the_byte() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    put(place.path(), r#"{"tok"#);
    let output = run(native(place.path()));
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("tokens.json") && said.contains("byte 5"), "{said}");
}

#[test]
fn a_store_that_breaks_while_it_is_served_leaves_the_last_good_one_and_is_logged_once() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let good = std::fs::read_to_string(place.path().join("tokens.json")).expect("read");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let status = |token: &str| post(address, "/", Some(token), &[], INITIALIZE).status;
    assert_eq!(status(PUBLIC), 200);

    put(place.path(), good.get(..good.len() / 2).expect("half of it"));
    for _ in 0..5 {
        assert_eq!(status(PUBLIC), 200);
        assert_eq!(status("no-such-token"), 401);
    }

    // In place, it is what the very next request meets, in both directions.
    put(place.path(), &good.replace(PUBLIC, "another-token"));
    assert_eq!(status(PUBLIC), 401);
    assert_eq!(status("another-token"), 200);
    std::fs::remove_file(place.path().join("tokens.json")).expect("removed");
    assert_eq!(status("another-token"), 401);

    service.signal(rustix::process::Signal::TERM);
    service.line_with("stopping");
    let told = service.log.iter().filter(|line| line.contains("last good")).count();
    assert_eq!(told, 1, "{}", service.log.join("\n"));
    assert!(!service.log.iter().any(|line| line.contains(PUBLIC) || line.contains("another-token")));
}

/// The original's command line, which serves native workers alone and therefore everywhere.
fn native(place: &Path) -> std::process::Command {
    let mut command = playground(["mcp-http", "--backend", "jail", "--bind", "127.0.0.1:0", "--tokens", "tokens.json"]);
    command.args(["--faculties-workers", "workers.json"]).current_dir(place).stdout(Stdio::null());
    command
}

/// Renames this text into the store's place.
fn put(place: &Path, text: &str) {
    std::fs::write(place.join("beside"), text).expect("written");
    std::fs::rename(place.join("beside"), place.join("tokens.json")).expect("replaced");
}
