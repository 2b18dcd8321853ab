//! `exec`: streams and exit code are the program's own, and nothing outlives the command line.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::setting::{EVERY_WAY, Served, Setting};
use crate::process::{PATIENCE, Watched, text};

#[test]
fn a_program_gets_its_input_and_gives_its_output_errors_and_code() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("exec", served) else { return };
        let done = setting.run(&["exec", "alice", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!(done.status.code(), Some(7), "{served:?}");
        assert_eq!(text(&done.stdout), "out\n");
        assert_eq!(text(&done.stderr), "err\n", "nothing is added");
        let quoted = setting.run(&["exec", "alice", "--", "printf", "%s|", "a b", "it's", "$HOME", "*", "", "é\n"]);
        assert_eq!(text(&quoted.stdout), "a b|it's|$HOME|*||é\n|", "words stay as they were typed");
        let there = setting.run(&["exec", "alice", "--cwd", "/tmp", "--", "pwd"]);
        assert_eq!(text(&there.stdout), "/tmp\n");
        for (script, code) in [("kill -TERM $$", 143), ("kill -9 $$", 137), ("exit 255", 255)] {
            assert_eq!(setting.run(&["exec", "alice", "--", "sh", "-c", script]).status.code(), Some(code), "{script}");
        }
        assert_eq!(setting.run(&["exec", "alice", "--", "nothing-like-this"]).status.code(), Some(127));
        assert_eq!(setting.run(&["exec", "nobody", "--", "true"]).status.code(), Some(6));
        let plain = setting.run(&["exec", "alice", "--cwd", "/", "sh", "-c", "pwd; echo $*", "--", "--cwd", "-n"]);
        assert_eq!(text(&plain.stdout), "/\n--cwd -n\n", "from the program's name on, all is the program's");
        assert_eq!(setting.run(&["exec", "alice", "--cwd", "/nowhere", "--", "true"]).status.code(), Some(1));
        setting.end();
    }
}

#[test]
fn many_bytes_of_any_value_come_through_both_ways() {
    for served in [Served::Nobody, Served::Service] {
        let Some(setting) = Setting::with_alice("exec of bytes", served) else { return };
        // Every byte after every other, and more than any buffer on the way.
        let all: Vec<u8> = (0..64 << 20).map(|at: u32| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        let mut child = setting.command(&["exec", "alice", "--", "cat"]);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (mut to, mut from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut back = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                to.write_all(&all).expect("written");
                drop(to);
            });
            from.read_to_end(&mut back).expect("read");
        });
        assert!(back == all, "{} bytes came back", back.len());
        assert_eq!(child.wait().expect("ended").code(), Some(0));
        setting.end();
    }
}

#[test]
fn a_time_that_is_over_and_ctrl_c_end_the_whole_tree() {
    for served in [Served::Nobody, Served::Service] {
        let Some(setting) = Setting::with_alice("exec that is ended", served) else { return };
        let tree = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; echo up; exec sleep 1000' & wait";
        let late = setting.run(&["exec", "alice", "--timeout", "1s", "--", "sh", "-c", tree]);
        assert_eq!(late.status.code(), Some(124), "{}", text(&late.stderr));
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let mut child = setting.command(&["exec", "alice", "--", "sh", "-c", tree]);
            let mut child = child.stdout(Stdio::piped()).spawn().expect("starts");
            let mut up = [0; 3];
            child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("read");
            kill_process(Pid::from_child(&child), signal).expect("signalled");
            assert!(Watched::of(child.id()).gone_within(PATIENCE), "it did not end");
            assert_eq!(child.wait().expect("ended").code(), Some(code));
            let left = setting.run(&["exec", "alice", "--", "sh", "-c", "kill -0 $(cat pid)"]);
            assert_eq!(left.status.code(), Some(1), "what it started is dead");
        }
        setting.end();
    }
}

#[test]
fn what_a_killed_command_line_started_is_ended() {
    let Some(setting) = Setting::with_alice("a killed exec", Served::Service) else { return };
    let mut child = setting.command(&["exec", "alice", "--", "sh", "-c", "echo up; exec sleep 1000"]);
    let mut child = child.stdout(Stdio::piped()).spawn().expect("starts");
    let mut up = [0; 3];
    child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("read");
    let counts = || text(&setting.run(&["exec", "alice", "--", "sh", "-c", "ps -e | grep -c '[s]leep'"]).stdout);
    assert_eq!(counts(), "1\n");
    child.kill().expect("killed");
    child.wait().expect("ended");
    let deadline = kit::clock::now() + PATIENCE;
    while counts() != "0\n" {
        assert!(kit::clock::now() < deadline, "it lives on");
    }
    setting.end();
}

#[test]
fn what_stays_in_the_background_does_not_hold_the_command_line() {
    let Some(setting) = Setting::with_alice("exec with a background", Served::Service) else { return };
    let done = setting.run(&["exec", "alice", "--", "sh", "-c", "yes & sleep 1000 & echo $! > pid; printf done >&2"]);
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stderr).ends_with("done"), "{}", text(&done.stderr));
    let alive = setting.run(&["exec", "alice", "--", "sh", "-c", "kill -0 $(cat pid)"]);
    assert_eq!(alive.status.code(), Some(0), "as after any other command, it lives on: {}", text(&alive.stderr));
    setting.end();
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let Some(setting) = Setting::with_alice("exec into a closed pipe", Served::Service) else { return };
    let mut child = setting.command(&["exec", "alice", "--", "yes"]);
    let mut child = child.stdout(Stdio::piped()).spawn().expect("starts");
    let mut some = [0; 4];
    child.stdout.take().expect("piped").read_exact(&mut some).expect("read");
    assert!(Watched::of(child.id()).gone_within(PATIENCE), "it did not end");
    assert_eq!(child.wait().expect("ended").code(), Some(141), "as it would on this side");
    setting.end();
}

#[test]
fn a_long_command_holds_up_no_other_question_and_its_end_is_honest() {
    for served in [Served::Service, Served::Worker] {
        let Some(setting) = Setting::with_alice("questions beside a command", served) else { return };
        let mut child = setting.command(&["exec", "alice", "--", "sh", "-c", "echo up; exec sleep 1000"]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut up = [0; 3];
        child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("read");
        assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tlive\n");
        let service = setting.service.as_ref().expect("served");
        if served == Served::Service {
            service.child("__worker").kill();
        } else {
            service.signal(Signal::KILL);
        }
        assert!(Watched::of(child.id()).gone_within(PATIENCE), "it did not end");
        let done = child.wait_with_output().expect("ended");
        assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains("whether it took effect is not known"), "{}", text(&done.stderr));
    }
}

#[test]
fn more_operators_than_the_tenant_may_have_jobs_are_served() {
    let Some(mut setting) = Setting::with_alice("many execs", Served::Service) else { return };
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut child = setting.command(&["exec", "alice", "--", "sh", "-c", "echo up; exec cat"]);
            let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
            let mut up = [0; 3];
            child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("read");
            child
        })
        .collect();
    let service = setting.service.take().expect("served");
    assert_eq!(text(&setting.run(&["user", "list"]).stdout), "alice\tlive\n");
    for mut child in children {
        drop(child.stdin.take());
        assert!(Watched::of(child.id()).gone_within(PATIENCE), "it did not end");
        assert_eq!(child.wait().expect("ended").code(), Some(0));
    }
    setting.service = Some(service);
    setting.end();
}

#[test]
fn a_stop_of_the_service_ends_what_an_operator_runs() {
    let Some(mut setting) = Setting::with_alice("exec and a stop", Served::Service) else { return };
    let mut service = setting.service.take().expect("served");
    let mut child = setting.command(&["exec", "alice", "--", "sh", "-c", "echo up; exec sleep 1000"]);
    let mut child = child.stdout(Stdio::piped()).spawn().expect("starts");
    let mut up = [0; 3];
    child.stdout.as_mut().expect("piped").read_exact(&mut up).expect("read");
    service.signal(Signal::TERM);
    assert_eq!(service.ended_within(Duration::from_secs(10)).code(), Some(0), "{}", service.rest());
    assert!(Watched::of(child.id()).gone_within(PATIENCE), "it did not end");
    assert!(matches!(child.wait().expect("ended").code(), Some(1 | 4)), "nobody says that it went well");
    setting.end();
}
