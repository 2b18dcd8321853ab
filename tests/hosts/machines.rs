//! A virtual machine's life, beside those of others.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::{self, Service, Watched, run, text};
use crate::talk::Talk;
use crate::world::World;

pub(crate) const ALICE: &str = "playground-sbx-alice-2bd806c97f0e00af";
const BOB: &str = "playground-sbx-bob-81b637d8fcd2c6da";
/// The original's name of alice's machine, and one that no service here has made.
const STRANGERS: [&str; 2] = ["playground-sbx-alice", "playground-sbx-zoe-0123456789abcdef"];

/// A host with two machines of strangers on it, one of which runs, and the real program beside them.
pub(crate) struct Host {
    pub(crate) world: World,
}

impl Host {
    pub(crate) fn new(what: &str) -> Option<Self> {
        let world = World::new(what)?;
        let file = world.word("own.yaml");
        fs::write(&file, "images: []\nmounts: []\n").expect("written");
        for name in STRANGERS {
            world.told("limactl", ["create", "--tty=false", "--name", name, &file]);
        }
        world.told("limactl", ["start", "--tty=false", STRANGERS[0]]);
        Some(Self { world })
    }

    pub(crate) fn playground<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        self.aimed(process::playground(words))
    }

    fn aimed(&self, mut command: Command) -> Command {
        command
            .args(["--backend", "lima", "--admin-limit-s", "60", "--state"])
            .arg(self.world.path("state"))
            .arg("--state-root")
            .arg(self.world.path("root"))
            .env("PATH", self.world.path("bin"))
            .env("HOME", self.world.root())
            .env("USER", "operator");
        command
    }

    pub(crate) fn run<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Output {
        run(self.playground(words))
    }

    pub(crate) fn told<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{}\n{}", text(&output.stderr), self.world.calls().join("\n"));
        text(&output.stdout)
    }

    /// What a failure says.
    pub(crate) fn refused<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(words);
        assert!(output.status.code().is_some_and(|code| code != 0), "{output:?}");
        text(&output.stderr)
    }

    /// Checks that there are these machines of ours in these states, and the strangers' as they were.
    pub(crate) fn holds(&self, wanted: &[(&str, &str)]) {
        let model = self.world.model();
        let machines = model["machines"].as_object().expect("a map");
        let found: Vec<_> =
            machines.iter().map(|(name, its)| (name.as_str(), its["status"].as_str().expect("a state"))).collect();
        let strangers = [(STRANGERS[0], "Running"), (STRANGERS[1], "Stopped")];
        let mut all = [wanted, &strangers].concat();
        all.sort_unstable();
        assert_eq!(found, all);
    }

    /// What lies in the folders of records and of machines, which are not machines themselves.
    pub(crate) fn files_of_machines(&self) -> Vec<String> {
        let entries =
            ["state/sandbox/lima", "root"].map(|folder| fs::read_dir(self.world.path(folder)).expect("listed"));
        let names = entries.into_iter().flatten().map(|entry| entry.expect("listed").file_name());
        names.map(|name| name.into_string().expect("text")).collect()
    }

    fn tree(&self, rest: &str) -> PathBuf {
        self.world.path("lima").join(ALICE).join("root").join(rest)
    }

    fn pile(&self) -> PathBuf {
        self.world.path("state/sandbox/lima/piles").join(ALICE).join("self.pile")
    }
}

#[test]
fn a_machine_is_made_used_and_removed() {
    let Some(host) = Host::new("a machine's life") else { return };
    host.told(["user", "create", "alice", "--pile-unenforced"]);
    host.holds(&[(ALICE, "Running")]);
    host.told(["user", "create", "alice", "--pile-unenforced"]);
    host.holds(&[(ALICE, "Running")]);
    let attached: Value = serde_json::from_str(&host.told(["user", "attach", "alice"])).expect("one object");
    assert_eq!(attached["session_id"], ALICE);
    let mut talk = Talk::start(host.playground(["mcp"]));
    let session = talk.open("alice");
    assert_eq!(talk.exec(&session, "echo it\\'s \"$((1+1))\" >&2; exit 3"), "[stderr]\nit's 2\n[exit 3]");
    talk.exec(&session, "echo mine >> /pile/self.pile");
    assert_eq!(fs::read_to_string(host.pile()).expect("read"), "mine\n");
    let odd = "a 'b\" $(id) c";
    let write = json!({ "session": session, "path": odd, "text": "one\n" });
    assert!(!talk.call("write_file", &write).1);
    assert_eq!(fs::read_to_string(host.tree("root").join(odd)).expect("read"), "one\n");
    assert_eq!(talk.call("read_file", &json!({ "session": session, "path": odd })), ("one\n".to_owned(), false));
    let (said, is_fault) = talk.call("job_exec", &json!({ "session": session, "command": "true" }));
    assert!(is_fault && said.contains("background"), "{said}");
    talk.end();
    host.told(["user", "destroy", "alice", "--yes"]);
    host.holds(&[]);
    assert_eq!(fs::read_to_string(host.pile()).expect("the pile stays"), "mine\n");
    assert!(host.refused(["user", "destroy", "alice", "--yes"]).contains("alice"));
}

#[test]
fn a_doctor_says_of_machines_what_was_tried_and_binds_the_state_to_nothing() {
    let Some(host) = Host::new("a doctor of machines") else { return };
    fs::create_dir(host.world.path("state")).expect("made");
    fs::set_permissions(host.world.path("state"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("private");
    let said = host.told(["doctor"]);
    assert!(said.contains("not-tried\tisolation\t") && said.contains("ok\tstart\t"), "{said}");
    assert!(said.contains("ok\tlimactl\t") && !said.contains("user-namespaces"), "{said}");
    assert!(!said.contains("mkfs.ext4") && !said.contains("ext4, xfs"), "{said}");
    assert!(!host.world.calls().iter().any(|call| call.starts_with("limactl shell")), "nothing was attacked");
    assert!(!host.world.path("state/sandbox/backend").exists(), "it only looked");
    host.holds(&[]);
    host.told(["user", "create", "alice"]);
    assert!(host.world.path("state/sandbox/backend").exists());
}

#[test]
fn a_local_client_finds_every_machine_up_and_leaves_it_at_rest() {
    let Some(host) = Host::new("the sweep of a local client") else { return };
    for name in ["alice", "bob"] {
        host.told(["user", "create", name]);
    }
    host.told(["user", "disable", "bob"]);
    host.told(["clean", "--yes"]);
    host.holds(&[(ALICE, "Stopped"), (BOB, "Stopped")]);
    let mut talk = Talk::start(host.playground(["mcp"]));
    // It starts by itself; whoever needs it waits for it.
    talk.open("alice");
    host.holds(&[(ALICE, "Running"), (BOB, "Stopped")]);
    talk.end();
    host.holds(&[(ALICE, "Stopped"), (BOB, "Stopped")]);
}

#[test]
fn a_service_starts_machines_at_its_beginning_and_stops_them_at_its_end() {
    let Some(host) = Host::new("the sweep of a service") else { return };
    for name in ["alice", "bob"] {
        host.told(["user", "create", name]);
    }
    host.told(["user", "disable", "bob"]);
    host.told(["clean", "--yes"]);
    let mut service = Service::start(host.playground(["serve", "--bind", "127.0.0.1:0"]));
    service.ready();
    if !service.log.iter().any(|line| line.contains(AGAIN)) {
        service.line_with(AGAIN);
    }
    host.holds(&[(ALICE, "Running"), (BOB, "Stopped")]);
    service.stop();
    host.holds(&[(ALICE, "Stopped"), (BOB, "Stopped")]);
}

/// What the log says when a service has started a machine.
const AGAIN: &str = "a machine runs again";

#[test]
fn what_limactl_says_of_its_work_is_passed_on_and_its_last_words_are_those_of_a_failure() {
    let Some(host) = Host::new("words of limactl") else { return };
    let fatal = "time=\"2026-11-30T12:00:00+01:00\" level=fatal msg=\"the VM \\\"x\\\" exited\"";
    host.world.fault(&json!([{ "call": ["limactl", "start"], "do": "fail", "after": true, "stderr": fatal }]));
    let said = host.refused(["user", "create", "alice"]);
    assert!(said.contains("said=\"Terminal is not available"), "{said}");
    let failure = said.lines().find(|line| line.starts_with("error: ")).expect("a failure");
    let last = "Starting the instance";
    assert!(failure.contains(last) && failure.contains("fatal: the VM \"x\" exited"), "{failure}");
    assert!(!failure.contains("level="), "{failure}");
    host.holds(&[]);
}

#[test]
fn a_machine_that_does_not_heed_is_stopped_by_force() {
    let Some(host) = Host::new("machines that do not stop") else { return };
    host.told(["user", "create", "alice"]);
    host.world.fault(&json!([{ "call": ["limactl", "stop", ALICE], "do": "fail" }]));
    host.told(["clean", "--yes"]);
    host.holds(&[(ALICE, "Stopped")]);
    assert!(host.world.calls().contains(&format!("limactl stop --force {ALICE}")));
}

#[test]
fn a_machine_of_a_strangers_that_has_the_name_is_left_alone() {
    let Some(host) = Host::new("machines with our names") else { return };
    host.world.told("limactl", ["create", "--tty=false", "--name", ALICE, &host.world.word("own.yaml")]);
    for words in
        [&["user", "create", "alice"][..], &["user", "attach", "alice"], &["user", "destroy", "alice", "--yes"]]
    {
        host.refused(words.iter().copied());
        host.holds(&[(ALICE, "Stopped")]);
    }
    host.told(["clean", "--yes"]);
    Talk::start(host.playground(["mcp", "--tenant", "bob"])).end();
    host.holds(&[(ALICE, "Stopped"), (BOB, "Stopped")]);
}

/// The making of alice's machine, which hangs before limactl has made one; meanwhile a stranger's takes the name.
fn overtaken(host: &Host) -> Service {
    let before = host.world.calls().len();
    host.world.fault(&json!([{ "call": ["limactl", "create"], "nth": 1, "do": "hang" }]));
    let making = Service::start(host.playground(["user", "create", "alice"]));
    let deadline = kit::clock::now() + process::PATIENCE;
    while !host.world.calls().split_off(before).iter().any(|call| call.contains("limactl create")) {
        assert!(kit::clock::now() < deadline, "{:#?}", host.world.calls().split_off(before));
        std::thread::yield_now();
    }
    host.world.told("limactl", ["create", "--tty=false", "--name", ALICE, &host.world.word("own.yaml")]);
    making
}

#[test]
fn a_machine_that_takes_the_name_while_ours_is_made_is_not_ours() {
    let Some(host) = Host::new("a name that is taken meanwhile") else { return };
    for signal in [Signal::INT, Signal::KILL] {
        let mut making = overtaken(&host);
        let family = making.family();
        making.signal(signal);
        making.ended_within(process::PATIENCE);
        if signal == Signal::KILL {
            // What it ran goes on without it.
            family.iter().for_each(Watched::kill);
        }
        host.world.settle();
        host.world.fault(&json!([]));
        // One that was killed leaves a record, which says that there is one of ours.
        for words in
            [&["user", "create", "alice"][..], &["user", "attach", "alice"], &["user", "destroy", "alice", "--yes"]]
        {
            host.refused(words.iter().copied());
            host.holds(&[(ALICE, "Stopped")]);
        }
        assert!(host.refused(["user", "create", "alice"]).contains("has not made"));
        host.world.told("limactl", ["start", "--tty=false", ALICE]);
        host.refused(["user", "attach", "alice"]);
        host.told(["clean", "--yes"]);
        let mut service = Service::start(host.playground(["serve", "--bind", "127.0.0.1:0"]));
        service.ready();
        service.stop();
        host.holds(&[(ALICE, "Running")]);
        assert!(!host.world.calls().iter().any(|call| call.contains(&format!("limactl shell --workdir / {ALICE}"))));
        host.world.told("limactl", ["delete", "--force", ALICE]);
    }
    // Once the stranger's has gone, what was begun is finished.
    host.told(["user", "create", "alice"]);
    host.holds(&[(ALICE, "Running")]);
    host.told(["user", "destroy", "alice", "--yes"]);
    host.holds(&[]);
}
