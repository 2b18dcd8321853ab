//! `__reap`: whoever sees its exit code knows that nobody is left.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::process::{PATIENCE, Service, Watched, playground, program, run, text};

fn reaping(grace: &str, limit: &str, words: &[&str]) -> Command {
    let mut command = playground(["__reap", grace, limit, "--"]);
    command.args(words).env("PATH", "/usr/bin:/bin");
    command
}

fn reap(grace: &str, limit: &str, script: &str) -> Output {
    run(reaping(grace, limit, &["/bin/sh", "-c", script]))
}

/// Processes whose command line has this word.
fn with_word(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("a table of processes").filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| text(&line)).filter(|line| line.split('\0').any(|part| part == word)).collect()
}

/// A number of seconds that no other process of this host sleeps.
fn nap(salt: u32) -> String {
    format!("9{:07}{salt:02}", std::process::id())
}

#[test]
fn everybody_a_program_has_left_is_dead_at_its_end() {
    let nap = nap(1);
    // A child, an orphan in a session of its own that ignores signals and was forked twice, and one of that one's.
    let script = format!(
        "sleep {nap} & (setsid sh -c 'trap \"\" TERM HUP INT; sleep {nap} & echo one; sleep {nap}' &)
         (sh -c '(trap \"\" TERM; echo two; exec sleep {nap}) &' &)
         until [ $(cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' '\\n' | grep -cx {nap}) -ge 4 ]; do :; done
         exit 7"
    );
    let output = reap("1", "0", &script);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 2, "both were up");
    assert_eq!(with_word(&nap), Vec::<String>::new());
}

#[test]
fn a_tree_that_ignores_sigterm_dies_of_it_and_a_stranger_does_not() {
    let (nap, other) = (nap(2), nap(3));
    let mut stranger = program("/bin/sleep").arg(&other).stdin(Stdio::null()).spawn().expect("starts");
    let script = format!(
        "trap '' TERM INT HUP; (setsid sh -c 'sleep {nap} & sleep {nap}' &); (setsid sleep {nap} &)
         i=0; while [ $i -lt 200 ]; do (sleep {nap} &); i=$((i+1)); [ $i = 20 ] && echo up >&2; done; sleep {nap}"
    );
    let mut service = Service::start(reaping("0.2", "0", &["/bin/sh", "-c", &script]));
    service.line_with("up");
    let family = service.family();
    assert!(family.len() > 4, "there is a tree");
    service.signal(Signal::TERM);
    let status = service.ended_within(PATIENCE);
    assert_eq!(status.code(), Some(128 + 9), "the program did not mind SIGTERM: {}", service.rest());
    assert!(family.iter().all(|one| one.gone_within(std::time::Duration::ZERO)), "gone before the reaper was");
    assert_eq!(with_word(&nap), Vec::<String>::new());
    assert!(stranger.try_wait().expect("known").is_none(), "a process of somebody else lives on");
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

fn awaiting(limit: &str, script: &str) -> Command {
    let mut command = playground(["__reap", "0.2", limit, "--await", "--", "/bin/sh", "-c", script]);
    command.env("PATH", "/usr/bin:/bin");
    command
}

#[test]
fn what_a_program_leaves_is_waited_for_where_that_is_wanted() {
    let script = "(setsid sh -c 'sleep 0.3; (setsid sh -c \"sleep 0.2; echo late\" &)' &); exit 4";
    let output = run(awaiting("0", script));
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(4), "late\n"), "{}", text(&output.stderr));
}

#[test]
fn what_is_waited_for_has_the_programs_time_and_minds_its_end() {
    let nap = nap(4);
    let script = format!("(setsid sh -c 'trap \"\" TERM; sleep {nap}' &); (setsid sleep {nap} &); echo up >&2");
    assert_eq!(run(awaiting("0.5", &script)).status.code(), Some(124));
    assert_eq!(with_word(&nap), Vec::<String>::new());
    let mut service = Service::start(awaiting("0", &script));
    service.line_with("up");
    service.signal(Signal::TERM);
    assert_eq!(service.ended_within(PATIENCE).code().map(|code| [0, 128 + 15].contains(&code)), Some(true));
    assert_eq!(with_word(&nap), Vec::<String>::new());
}

#[test]
fn a_program_that_minds_sigterm_has_its_grace() {
    let mut service = Service::start(reaping(
        "1000",
        "0",
        &["/bin/sh", "-c", "trap 'exit 3' TERM; echo up >&2; while :; do sleep 0.05; done"],
    ));
    service.line_with("up");
    service.signal(Signal::TERM);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(3));
}

#[test]
fn codes_are_those_of_the_program_or_say_why_there_is_none() {
    for (script, code) in [("exit 0", 0), ("exit 11", 11), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
        assert_eq!(reap("1", "0", script).status.code(), Some(code), "{script}");
    }
    assert_eq!(reap("1000", "0.1", "sleep 1000").status.code(), Some(124));
    assert_eq!(reap("0.1", "0.1", "trap '' TERM; sleep 1000; sleep 1000").status.code(), Some(124));
    assert_eq!(reap("1", "1000", "exit 5").status.code(), Some(5), "a limit that is not reached");
    assert_eq!(run(reaping("1", "0", &["/nowhere/at/all"])).status.code(), Some(127));
    assert_eq!(run(reaping("1", "0", &["/etc/passwd"])).status.code(), Some(126));
    for words in [
        &["__reap"][..],
        &["__reap", "1", "0", "true"],
        &["__reap", "x", "0", "--", "true"],
        &["__reap", "1", "0", "--await", "true"],
        &["__reap", "1", "0", "--"],
    ] {
        let refused = run(playground(words));
        assert_eq!(refused.status.code(), Some(125), "{words:?}");
        assert!(text(&refused.stderr).contains("usage: __reap"), "{}", text(&refused.stderr));
    }
}

#[test]
fn streams_and_environment_are_the_programs() {
    let mut command = reaping("1", "0", &["/bin/sh", "-c", "cat; echo $WORD >&2; pwd"]);
    command
        .env("WORD", "handed on")
        .current_dir("/usr")
        .stdin(Stdio::from(std::fs::File::open("/etc/hostname").expect("there")));
    let output = run(command);
    let hostname = std::fs::read_to_string("/etc/hostname").expect("there");
    assert_eq!(text(&output.stdout), format!("{hostname}/usr\n"));
    assert_eq!(text(&output.stderr), "handed on\n");
}

#[test]
fn a_reaper_that_is_killed_leaves_no_code() {
    let mut service = Service::start(reaping("1", "0", &["/bin/sh", "-c", "echo up >&2; sleep 1000; true"]));
    service.line_with("up");
    let family = service.family();
    service.signal(Signal::KILL);
    let status = service.ended_within(PATIENCE);
    assert_eq!((status.code(), status.signal()), (None, Some(9)));
    for one in family {
        one.kill();
        assert!(one.gone_within(PATIENCE));
    }
}

#[test]
fn orphans_that_end_while_the_program_runs_are_collected() {
    let nap = nap(4);
    let script = format!("i=0; while [ $i -lt 30 ]; do (true &); i=$((i+1)); done; echo up >&2; exec sleep {nap}");
    let mut service = Service::start(reaping("0.1", "0", &["/bin/sh", "-c", &script]));
    service.line_with("up");
    let deadline = kit::clock::now() + PATIENCE;
    while service.family().len() > 1 {
        assert!(
            kit::clock::now() < deadline,
            "{:?}",
            service.family().iter().map(|one: &Watched| one.id).collect::<Vec<_>>()
        );
        std::thread::yield_now();
    }
    service.signal(Signal::TERM);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(128 + 15));
}
