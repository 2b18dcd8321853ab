//! Commands in jails, with what answers for them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::process::{PATIENCE, Watched, children, is_root, skip, text};
use crate::terminal::Person;
use crate::verbs::Site;

/// A client at the other end of a pipe.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
    session: String,
}

impl Client {
    fn of(mut command: Command, tenant: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        let mut client = Self { child, input, output, number: 0, session: String::new() };
        client.ask(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
        );
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let opened = client.calls("open_session", json!({ "tenant": tenant }));
        client.session = opened["structuredContent"]["session"].as_str().expect("a session").to_owned();
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("open"), "{message}").expect("said");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("read") > 0, "it hung up at {method}");
            let answer: Value = serde_json::from_str(&line).expect("whole");
            if answer["id"] == self.number {
                return answer["result"].clone();
            }
        }
    }

    fn calls(&mut self, tool: &str, mut arguments: Value) -> Value {
        if !self.session.is_empty() && tool != "job_cancel" && tool != "job_poll" {
            arguments["session"] = self.session.clone().into();
        }
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Starts a job, and waits until it has said this.
    fn job(&mut self, command: &str, until: &str) -> String {
        let started = self.calls("job_exec", json!({ "command": command }));
        let job = started["structuredContent"]["job_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
        while !self.calls("job_poll", json!({ "job_id": job, "wait_ms": 1000 })).to_string().contains(until) {}
        job
    }

    /// What answers for the one command that runs.
    fn reaper(&self) -> Watched {
        let own = children(self.child.id()).into_iter().filter(|id| {
            let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"__reap")
        });
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 1, "{own:?}");
        Watched::of(own[0])
    }

    fn ended(&mut self) -> Option<i32> {
        assert!(Watched::of(self.child.id()).gone_within(PATIENCE), "it did not end");
        self.child.wait().expect("ended").code()
    }
}

/// How many processes have this word.
fn with_word(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("a table of processes").filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())).count()
}

/// A site with a tenant, where jails are those of root.
fn site(what: &str) -> Option<Site> {
    if !is_root() {
        skip(what, "not root");
        return None;
    }
    let site = Site::new(what)?;
    site.done(&["user", "create", "alice"]);
    Some(site)
}

fn signal(process: &Watched, signal: Signal) {
    let id = i32::try_from(process.id).ok().and_then(Pid::from_raw).expect("an id");
    kill_process(id, signal).expect("signalled");
}

#[test]
fn a_job_is_ended_with_all_that_it_started_by_a_reaper_of_ours() {
    let Some(site) = site("jobs in jails") else { return };
    let nap = format!("8{:07}01", std::process::id());
    let mut client = Client::of(site.says(&["mcp", "--tenant", "alice"]), "alice");
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; sleep {nap}; sleep {nap}' &); (setsid sleep {nap} &); echo up; sleep {nap}"
    );
    let job = client.job(&script, "up");
    assert!(with_word(&nap) >= 2, "they run");
    client.calls("job_cancel", json!({ "job_id": job }));
    while !client.calls("job_poll", json!({ "job_id": job, "wait_ms": 10_000 })).to_string().contains("cancelled") {}
    assert_eq!(with_word(&nap), 0);
    let ran = client.calls("exec", json!({ "command": "(setsid sh -c 'sleep 0.2; echo late' &); echo first; exit 3" }));
    assert!(ran.to_string().contains("first\\nlate"), "what it leaves is waited for: {ran}");
    drop(client.input.take());
    assert_eq!(client.ended(), Some(0));
    assert!(site.has("alice"), "the jail outlives it");
    assert!(!site.world.calls().iter().any(|call| call.starts_with("timeout")), "{:?}", site.world.calls());
}

#[test]
fn where_a_reaper_is_killed_or_does_not_answer_control_is_lost() {
    let Some(site) = site("reapers that are lost") else { return };
    for how in [Signal::KILL, Signal::STOP] {
        let mut client = Client::of(site.says(&["mcp", "--tenant", "alice"]), "alice");
        let job = client.job("echo up; exec sleep 600", "up");
        let reaper = client.reaper();
        signal(&reaper, how);
        if how == Signal::STOP {
            let cancel = json!({ "name": "job_cancel", "arguments": { "job_id": job } });
            client.say(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": cancel }));
        }
        assert_eq!(client.ended(), Some(11), "{how:?}");
        assert!(reaper.gone_within(PATIENCE));
        site.world.told("jail", ["-r", site.jails()[0].as_str()]);
        site.done(&["user", "attach", "alice"]);
    }
}

#[test]
fn behind_ssh_a_command_runs_and_no_job_is_admitted() {
    let Some(site) = site("jobs behind ssh") else { return };
    let file = site.world.path("playground.toml");
    let said = std::fs::read_to_string(&file).expect("written").replace("local = true", "host = \"jailhost\"");
    std::fs::write(&file, said).expect("written");
    let mut client = Client::of(site.says(&["mcp", "--tenant", "alice"]), "alice");
    let ran = client.calls("exec", json!({ "command": "echo a$((40 + 2))z", "timeout_ms": 30_000 }));
    assert!(ran.to_string().contains("a42z"), "{ran}");
    let refused = client.calls("job_exec", json!({ "command": "sleep 600" }));
    assert_eq!(refused["isError"], true, "{refused}");
    drop(client.input.take());
    assert_eq!(client.ended(), Some(0));
    let wrapped: Vec<_> =
        site.world.calls().into_iter().filter(|call| call.starts_with("timeout -k 5 50 jexec")).collect();
    assert_eq!(wrapped.len(), 1, "the host ends it itself where nobody else does: {:?}", site.world.calls());
}

#[test]
fn a_shell_controls_its_terminal() {
    let Some(site) = site("terminals in jails") else { return };
    let mut person = Person::types(&site.says(&["shell", "alice"]));
    person.press("echo t$((1 + 1))y > /dev/tty\n");
    person.sees("t2y");
    let nap = format!("8{:07}02", std::process::id());
    person.press(&format!("sleep {nap}\n"));
    let deadline = kit::clock::now() + PATIENCE;
    while with_word(&nap) == 0 {
        assert!(kit::clock::now() < deadline, "it does not sleep");
        std::thread::yield_now();
    }
    person.press("\x03");
    person.press("echo a$((40 + 3))z\n");
    person.sees("a43z");
    person.resize(33, 111);
    person.press("stty size\n");
    person.sees("33 111");
    person.press("exit 4\n");
    assert_eq!(person.ended().code(), Some(4));
}

#[test]
fn one_sandbox_that_is_not_as_it_has_to_be_keeps_no_other_down() {
    let Some(site) = site("a bad sandbox among good ones") else { return };
    site.done(&["user", "create", "bob"]);
    let jail = site.jails().into_iter().find(|jail| jail.contains("-alice-")).expect("alice's");
    site.world.host("reboot");
    site.world.told("zfs", ["set", "playground:tenant=mallory", &format!("aitemp/playground/{jail}")]);
    let mut edge = crate::process::Service::start(site.says(&["serve", "--bind", "127.0.0.1:0"]));
    let told = edge.line_with("does not come up");
    assert!(told.contains(&jail) && told.contains("mallory"), "{told}");
    edge.ready();
    assert!(site.has("bob") && !site.has("alice"), "{:?}", site.jails());
    edge.stop();
}

#[test]
fn a_doctor_attacks_a_jail_and_says_what_was_not_tried() {
    let Some(site) = site("a doctor of jails") else { return };
    let jails = site.jails();
    let mut doctor = site.says(&["doctor", "--smoke", "alice"]);
    let mut doctor = doctor.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // Some hundred programs of this host are run for it. What it says fits into a pipe.
    if !Watched::of(doctor.id()).gone_within(PATIENCE * 6) {
        doctor.kill().expect("killed");
    }
    let output = doctor.wait_with_output().expect("ended");
    let said = text(&output.stdout);
    let results: std::collections::BTreeMap<_, _> =
        said.lines().filter_map(|line| line.split('\t').nth(1).zip(line.split('\t').next())).collect();
    // Programs of this host keep no pile and bound nothing, and the doctor says so; what is done by us holds.
    for (id, wanted) in [
        ("start", "ok"),
        ("death", "ok"),
        ("limit-memory", "ok"),
        ("prove-neighbour-files", "pass"),
        ("prove-cancel-tree", "pass"),
        ("prove-cancel-spares", "pass"),
        ("prove-limit-memory", "fail"),
        ("prove-host-securelevel", "not-tried"),
        ("smoke-cancel", "ok"),
        ("smoke-close", "ok"),
    ] {
        assert_eq!(results.get(id), Some(&wanted), "{id}:\n{said}\n{}", text(&output.stderr));
    }
    assert!(!said.contains("what goes before it failed"), "{said}");
    assert!(!results.contains_key("isolation"), "it was attacked after all: {said}");
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert_eq!(site.jails(), jails, "nothing of it is left");
}

#[test]
fn a_doctor_that_attacks_nothing_says_so_and_how_it_would() {
    let Some(site) = site("a doctor who only looks at jails") else { return };
    let output = site.runs(&["doctor"]);
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{told}");
    let line = |id: &str| said.lines().find(|line| line.split('\t').nth(1) == Some(id)).unwrap_or_default().to_owned();
    for id in ["isolation", "append-only"] {
        let wanted = format!("not-tried\t{id}\tnothing was attacked from inside\tplayground doctor --smoke");
        assert_eq!(line(id), wanted, "{said}");
    }
    assert!(line("start").starts_with("ok\t"), "{said}");
    assert!(told.contains("2 guarantees were not tried; `playground doctor --smoke` tries them"), "{told}");
    for absent in ["user-namespaces", "mkfs.ext4", "withstood", "self-test"] {
        assert!(!said.contains(absent), "{absent}: {said}");
    }
    assert!(line("zfs").starts_with("ok\t") && line("jexec").starts_with("ok\t"), "{said}");
}

#[test]
fn a_command_finds_nothing_of_the_operators_around_it() {
    let Some(site) = site("what surrounds a command in a jail") else { return };
    let host = |file: &std::path::Path| {
        let said = std::fs::read_to_string(file).expect("written").replace("local = true", "host = \"jailhost\"");
        std::fs::write(file, said).expect("written");
    };
    for elsewhere in [false, true] {
        if elsewhere {
            host(&site.world.path("playground.toml"));
        }
        let mut command = site.says(&["exec", "alice", "--", "env"]);
        for name in ["USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "LIMA_HOME", "XDG_CACHE_HOME"] {
            command.env(name, "/of/the-operator");
        }
        let output = crate::process::run(command);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(said.contains("HOME=/workspace\n") && said.contains("USER=root\n"), "{said}");
        let root = site.world.root();
        assert!(!said.contains("the-operator") && !said.contains(root.to_str().expect("letters")), "{said}");
    }
}

#[test]
fn a_tenant_that_is_shown_is_as_live_as_in_the_list_and_runs_for_the_operator_when_disabled() {
    let Some(site) = site("one truth of jails") else { return };
    assert!(site.done(&["user", "list"]).contains("alice\tlive"));
    assert!(site.done(&["user", "show", "alice"]).contains("state\tlive\n"));
    site.done(&["user", "disable", "alice"]);
    let ran = site.runs(&["exec", "alice", "--", "echo", "it"]);
    assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(0), "it\n".to_owned()));
    assert!(text(&ran.stderr).contains("alice is disabled"), "{}", text(&ran.stderr));
    assert_eq!(site.runs(&["user", "attach", "alice"]).status.code(), Some(3));
}
