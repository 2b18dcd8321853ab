//! A running service takes up other files: by itself, on SIGHUP and when it is asked; what is wrong changes nothing.

#[cfg(feature = "tls")]
mod certificate;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

use rustix::process::Signal;

use crate::fake_worker::{FakeWorker, INITIALIZE, INTERNAL, Manner, PUBLIC};
use crate::http::{Answer, post};
use crate::process::{Service, playground, run, text};

const BOB: &str = "another-readable-token-for-bob";

const TAKEN_UP: &str = "the configuration was read again";
const REFUSED: &str = "the configuration cannot be taken up; nothing was changed";

/// A service of native workers: alice has one, and bob only a credential.
struct Natives {
    place: tempfile::TempDir,
    service: Service,
    address: SocketAddr,
    alice: FakeWorker,
    bob: FakeWorker,
}

impl Natives {
    fn start() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let (alice, bob) = (FakeWorker::start(Manner::Answers), FakeWorker::start(Manner::Answers));
        alice.write(place.path());
        let rows = [("alice", PUBLIC), ("bob", BOB)]
            .map(|(tenant, token)| format!(r#""{token}":{{"tenant":"{tenant}","backend":"jail"}}"#));
        std::fs::write(place.path().join("tokens.json"), format!(r#"{{"tokens":{{{}}}}}"#, rows.join(",")))
            .expect("written");
        let mut command = playground(["mcp-http", "--bind", "127.0.0.1:0", "--backend", "jail", "--tokens"]);
        command.args(["tokens.json", "--faculties-workers", "workers.json", "--state", "state"]);
        command.current_dir(place.path());
        let mut service = Service::start(command);
        let address = service.ready();
        Self { place, service, address, alice, bob }
    }

    fn manifest(&self, tenants: &[(&str, &FakeWorker)]) -> String {
        let row = |(tenant, worker): &(&str, &FakeWorker)| {
            format!(r#"{{"tenant":"{tenant}","address":"127.0.0.1:{}","token_file":"w.key"}}"#, worker.port)
        };
        format!(r#"{{"workers":[{}]}}"#, tenants.iter().map(row).collect::<Vec<_>>().join(","))
    }

    /// Renames a file with this text into place.
    fn put(&self, name: &str, text: &str) {
        put(self.place.path(), name, text);
    }

    fn call(&self, token: &str, session: Option<&str>) -> Answer {
        let more: Vec<_> = session.map(|session| ("mcp-session-id", session)).into_iter().collect();
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        post(self.address, "/mcp", Some(token), &more, if session.is_some() { ping } else { INITIALIZE })
    }

    fn reload(&self) -> Output {
        let mut command = playground(["reload", "--state", "state"]);
        command.current_dir(self.place.path());
        run(command)
    }
}

fn put(place: &Path, name: &str, text: &str) {
    let fresh = place.join("fresh");
    std::fs::write(&fresh, text).expect("written");
    std::fs::rename(fresh, place.join(name)).expect("renamed");
}

#[test]
fn a_manifest_renamed_into_place_brings_and_takes_tenants_while_sessions_of_others_go_on() {
    let mut natives = Natives::start();
    let opened = natives.call(PUBLIC, None);
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = &opened.head["mcp-session-id"];
    assert_ne!(natives.call(BOB, None).status, 200, "bob has no worker yet");

    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    let said = natives.service.line_with(TAKEN_UP);
    assert!(said.contains("worker of bob: added") && !said.contains("alice"), "{said}");
    assert_eq!(natives.call(BOB, None).status, 200);
    assert_eq!(natives.call(PUBLIC, Some(session)).status, 200, "her session is the same");

    natives.put("workers.json", &natives.manifest(&[("bob", &natives.bob)]));
    let said = natives.service.line_with(TAKEN_UP);
    assert!(said.contains("worker of alice: removed"), "{said}");
    assert_ne!(natives.call(PUBLIC, None).status, 200);
    assert_eq!(natives.call(BOB, None).status, 200);
    natives.service.stop();
}

#[test]
fn a_token_renamed_into_place_is_what_the_next_call_after_the_reload_sends() {
    let natives = Natives::start();
    let sent = |token: &str| {
        assert_eq!(natives.call(PUBLIC, None).status, 200);
        let asked = natives.alice.asked.recv().expect("asked");
        assert!(asked.head.contains(&format!("Bearer {token}\r\n")), "{}", asked.head);
    };
    sent(INTERNAL);
    let other = "another-internal-0123456789abcdefghij";
    natives.put("w.key", other);
    let output = natives.reload();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    // The service may have seen it by itself before it was asked.
    assert!(["worker of alice: another token\n", ""].contains(&text(&output.stdout).as_str()), "{output:?}");
    sent(other);
    natives.service.stop();
}

#[test]
fn what_cannot_be_read_changes_nothing_and_is_told_with_its_file() {
    let mut natives = Natives::start();
    natives.put("workers.json", "{\"workers\":[\n  {\"tenant\":");
    let said = natives.service.line_with(REFUSED);
    assert!(said.contains("workers.json:2:"), "{said}");
    assert_eq!(natives.call(PUBLIC, None).status, 200, "it goes on with what it had");
    let output = natives.reload();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(10), "{told}");
    assert!(told.contains("workers.json:2:") && told.contains("nothing was changed"), "{told}");
    assert!(output.stdout.is_empty());

    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    natives.service.line_with("worker of bob: added");
    assert_eq!(natives.call(BOB, None).status, 200);
    natives.service.stop();
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_told_and_holds_up_neither_later_reloads_nor_the_end() {
    let mut natives = Natives::start();
    let fifo = |name: &str| {
        let path = natives.place.path().join("fresh");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
        std::fs::rename(path, natives.place.path().join(name)).expect("renamed");
    };
    fifo("workers.json");
    let said = natives.service.line_with(REFUSED);
    assert!(said.contains("workers.json: it is a FIFO and no regular file"), "{said}");
    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    natives.service.line_with("worker of bob: added");
    fifo("workers.json");
    natives.service.line_with(REFUSED);
    natives.service.stop();
}

#[test]
fn a_service_that_nobody_changed_reads_nothing_again() {
    let mut natives = Natives::start();
    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    let said = natives.service.line_with(TAKEN_UP);
    assert!(said.contains("worker of bob: added"), "the first that it reads again is what was changed: {said}");
    natives.service.stop();
}

#[test]
fn a_hangup_reads_again_and_ends_nothing() {
    let mut natives = Natives::start();
    let session = natives.call(PUBLIC, None).head["mcp-session-id"].clone();
    natives.service.signal(Signal::HUP);
    let said = natives.service.line_with(TAKEN_UP);
    assert!(said.contains("changed=\"\""), "{said}");
    for child in natives.service.family() {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(i32::try_from(child.id).expect("an id")).expect("not zero"),
            Signal::HUP,
        )
        .expect("signalled");
    }
    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    natives.service.signal(Signal::HUP);
    natives.service.line_with("worker of bob: added");
    assert_eq!(natives.call(PUBLIC, Some(&session)).status, 200);
    assert_eq!(natives.call(BOB, None).status, 200);
    let acts = natives.place.path().join("state/operator.jsonl");
    let deadline = kit::clock::now() + crate::process::PATIENCE;
    while !std::fs::read_to_string(&acts).unwrap_or_default().contains(r#"["worker of bob: added"]"#) {
        assert!(kit::clock::now() < deadline, "a reload that nobody asked for by a command is on record");
    }
    natives.service.stop();
}

#[test]
fn an_edge_that_is_started_again_has_what_was_taken_up_last() {
    let mut natives = Natives::start();
    natives.put("workers.json", &natives.manifest(&[("alice", &natives.alice), ("bob", &natives.bob)]));
    natives.service.line_with("worker of bob: added");
    natives.service.child("__edge").kill();
    natives.service.line_with("is started again");
    assert_eq!(natives.call(BOB, None).status, 200);
    natives.service.stop();
}

#[test]
fn a_reload_says_what_changed_or_that_nothing_did_or_that_nobody_is_there() {
    let natives = Natives::start();
    let output = natives.reload();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("nothing has changed"), "{output:?}");
    let place = natives.place;
    natives.service.stop();
    let mut command = playground(["reload", "--state", "state"]);
    command.current_dir(place.path());
    let output = run(command);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no service runs on this state"), "{}", text(&output.stderr));
}
