//! `playground mcp`: a sandbox at the end of a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::host::{isolates, remove};
use crate::operator::setting::{Served, Setting};
use crate::process::{PATIENCE, Watched, family_of, playground, text};

struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Pipe {
    fn start(state: &std::path::Path) -> Self {
        Self::start_for(state, None)
    }

    fn start_for(state: &std::path::Path, tenant: Option<&str>) -> Self {
        let mut command = playground(["mcp", "--state"]);
        command
            .arg(state)
            .args(tenant.map(|tenant| format!("--tenant={tenant}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("written");
    }

    fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|fault| panic!("only MCP stands on stdout: {fault}: {line}"))
    }

    fn initialize(&mut self) {
        self.say(crate::fake_worker::INITIALIZE);
        assert_eq!(self.hear()["result"]["serverInfo"]["name"], "playground-sandbox");
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// Opens a session with a command that runs in it.
    fn busy(&mut self) -> Vec<Watched> {
        self.initialize();
        self.say(&call(2, "open_session", &json!({})));
        let opened = self.hear();
        let session = opened["result"]["structuredContent"]["session"].as_str().expect("a handle").to_owned();
        self.say(&call(3, "job_exec", &json!({ "session": session, "command": "sleep 600" })));
        assert_eq!(self.hear()["result"]["isError"], false);
        let family = family_of(self.child.id());
        assert!(family.len() >= 2, "a first process and a command");
        family
    }

    fn ended(mut self) -> Option<i32> {
        assert!(Watched::of(self.child.id()).gone_within(PATIENCE), "it did not end");
        self.child.wait().expect("ended").code()
    }
}

fn call(id: u32, tool: &str, arguments: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
        .to_string()
}

#[test]
fn a_line_of_garbage_is_answered_and_the_next_one_is_served() {
    if !isolates("stdio") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut pipe = Pipe::start(&state);
    pipe.say("this is no message");
    let answer = pipe.hear();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null));
    pipe.initialize();
    drop(pipe.input.take());
    assert_eq!(pipe.ended(), Some(0));
    remove(&state, "local");
}

#[test]
fn the_end_of_the_input_ends_everything_that_was_opened() {
    if !isolates("stdio's end") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut pipe = Pipe::start(&state);
    let family = pipe.busy();
    drop(pipe.input.take());
    assert_eq!(pipe.ended(), Some(0));
    assert!(family.iter().all(|member| member.gone_within(std::time::Duration::from_secs(2))));
    remove(&state, "local");
}

#[test]
fn a_signal_ends_everything_that_was_opened() {
    if !isolates("stdio's signal") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let mut pipe = Pipe::start(&state);
    let family = pipe.busy();
    let id = Pid::from_raw(i32::try_from(pipe.child.id()).expect("an id")).expect("not zero");
    kill_process(id, Signal::TERM).expect("signalled");
    assert_eq!(pipe.ended(), Some(0));
    assert!(family.iter().all(|member| member.gone_within(std::time::Duration::from_secs(2))));
    remove(&state, "local");
}

#[test]
fn the_only_tenant_is_meant_and_among_several_one_has_to_be_named() {
    if !isolates("stdio tenants") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let opened = |tenant: Option<&str>, named: &Value| {
        let mut pipe = Pipe::start_for(&place.path().join("state"), tenant);
        pipe.initialize();
        pipe.say(&call(2, "open_session", named));
        let result = pipe.hear()["result"].clone();
        pipe.say(&call(
            3,
            "exec",
            &json!({ "session": result["structuredContent"]["session"], "command": "hostname" }),
        ));
        let who = pipe.hear()["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        drop(pipe.input.take());
        assert_eq!(pipe.ended(), Some(0));
        (result["content"][0]["text"].as_str().expect("a text").to_owned(), who)
    };
    // With none there, `local` is made; it is the only one then, and its session is the same each time.
    let (first, who) = opened(None, &json!({}));
    assert_eq!(who, "local\n[exit 0]");
    assert_eq!(opened(None, &json!({})).0, first);
    let (other, who) = opened(Some("other"), &json!({}));
    assert_eq!((who.as_str(), other == first), ("other\n[exit 0]", false));
    let (refused, _) = opened(None, &json!({}));
    assert!(refused.contains("`tenant` is missing"), "{refused}");
    assert_eq!(opened(None, &json!({ "tenant": "local" })), (first, "local\n[exit 0]".to_owned()));
    assert_eq!(opened(Some("other"), &json!({})).0, other, "one that is named at the start is meant");
    remove(&place.path().join("state"), "local");
    remove(&place.path().join("state"), "other");
}

#[test]
fn who_does_not_hold_a_tenant_does_not_say_that_its_processes_ended() {
    for served in [Served::Service, Served::Nobody] {
        let Some(setting) = Setting::new("a tenant of another process", served) else { return };
        let mut pipe = Pipe::start_for(&setting.state, Some("alice"));
        let family = pipe.busy();
        let held = format!("held by another playground process (process {})", pipe.child.id());
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tlive\n");
        let shown = text(&setting.run(&["user", "show", "alice"]).stdout);
        assert!(shown.contains("state\tlive\n"), "{shown}");
        for line in [&["user", "stop", "alice"][..], &["clean"], &["user", "disable", "alice"]] {
            let refused = setting.run(line);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{line:?}: {said}");
            assert!(said.contains(&held) && !said.contains("ended its"), "{line:?}: {said}");
            assert!(family.iter().all(|one| !one.gone_within(std::time::Duration::ZERO)), "{line:?}");
        }
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tdisabled\n", "that was recorded");
        assert_eq!(setting.run(&["user", "enable", "alice"]).status.code(), Some(0));
        drop(pipe.input.take());
        assert_eq!(pipe.ended(), Some(0));
        for line in [&["user", "stop", "alice"][..], &["clean"], &["user", "disable", "alice"]] {
            assert_eq!(setting.run(line).status.code(), Some(0), "{line:?}");
        }
        setting.end();
    }
}
