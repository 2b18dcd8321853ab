use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::{Local, MOST};
use crate::backend::host::{Argv, End, Ending, Process, RunError, Runner, Running, Surroundings, started};
use crate::backend::{ControlLost, Ends, Exit, Killed, Pending, Streams, Terminal};

fn runner() -> Local {
    Local::impatient(Surroundings::default())
}

fn sh(script: &str) -> Argv {
    Argv::new("sh", ["-c", script])
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("it does not come to its end")
}

async fn is_gone(pid: &str) {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // Whoever adopted it may not have taken its exit yet.
    let dead = || {
        test_kill_process(pid).is_err()
            || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
                .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')))
    };
    within(async {
        while !dead() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn begin(runner: &Local, script: &str, stdin: bool) -> (Process, Option<OwnedFd>, OwnedFd) {
    let (process, ends) = runner.start(&sh(script), stdin, &Streams::Pipes).unwrap();
    let Ends::Pipes { stdin, stdout, .. } = ends else { panic!("pipes were asked for") };
    (process, stdin, stdout)
}

/// The first lines that a program writes.
async fn lines<const COUNT: usize>(stdout: OwnedFd) -> ([String; COUNT], BufReader<Receiver>) {
    let mut reader = BufReader::new(Receiver::from_owned_fd(stdout).unwrap());
    let mut found = [const { String::new() }; COUNT];
    for line in &mut found {
        within(reader.read_line(line)).await.unwrap();
    }
    (found, reader)
}

#[tokio::test]
async fn a_program_gets_its_input_and_gives_both_outputs_and_its_code() {
    let output = runner().run(&sh("cat; echo b >&2; exit 7"), Some(b"a"), LONG).await.unwrap();
    assert_eq!((output.exit, &output.stdout[..], &output.stderr[..]), (Exit::Code(7), &b"a"[..], &b"b\n"[..]));
}

#[tokio::test]
async fn without_input_standard_input_is_empty() {
    let output = within(runner().run(&sh("cat"), None, LONG)).await.unwrap();
    assert_eq!((output.exit, output.stdout), (Exit::Code(0), Vec::new()));
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_is_no_fault() {
    let output = within(runner().run(&sh("echo a"), Some(&vec![b'x'; 1 << 20]), LONG)).await.unwrap();
    assert_eq!(output.text(), "a\n");
}

#[tokio::test]
async fn a_program_finds_the_variables_it_was_given_and_no_others() {
    let output = Local::new(Surroundings::default()).run(&Argv::new("env", [""; 0]), None, LONG).await.unwrap();
    let text = output.text();
    let names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, ["LC_ALL", "PATH"]);
}

#[tokio::test]
async fn a_program_is_found_in_the_path_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("only-here");
    // Written by another process: a program cannot be started while anybody has it open for writing, and a fork of a test
    // beside this one would.
    let make = format!("printf '#!/bin/sh\necho found\n' > {0}; chmod 755 {0}", place.display());
    assert!(runner().run(&sh(&make), None, LONG).await.unwrap().is_good());
    let mut surroundings = Surroundings::default();
    surroundings.set("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let output = Local::new(surroundings).run(&Argv::new("only-here", [""; 0]), None, LONG).await.unwrap();
    assert_eq!(output.text(), "found\n");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_by_name() {
    let fault = runner().run(&Argv::new("no-such-program", [""; 0]), None, LONG).await.unwrap_err();
    assert_eq!(fault.to_string(), "start no-such-program");
    assert!(matches!(fault, RunError::NotStarted { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
}

#[tokio::test]
async fn output_is_taken_up_to_the_bound_and_not_beyond() {
    let script = |bytes: usize| sh(&format!("head -c {bytes} /dev/zero"));
    let output = within(runner().run(&script(MOST), None, LONG)).await.unwrap();
    assert_eq!(output.stdout.len(), MOST);
    let fault = within(runner().run(&script(MOST + 1), None, LONG)).await.unwrap_err();
    assert!(matches!(fault, RunError::TooMuch { most: MOST, .. }), "{fault}");
    // Without an end it is stopped.
    let fault = within(runner().run(&sh("yes >&2"), None, LONG)).await.unwrap_err();
    assert!(matches!(fault, RunError::TooMuch { .. }), "{fault}");
}

#[tokio::test]
async fn a_program_that_hangs_is_stopped_at_its_limit_with_its_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pids");
    let script = format!("trap '' TERM; sleep 1000 & echo $$ $! > {}; wait; wait", note.display());
    // Longer than a shell takes to begin on a busy host, in which the note is read while it runs.
    let runner = runner();
    let fault = within(runner.run(&sh(&script), None, Duration::from_secs(2))).await.unwrap_err();
    assert!(matches!(fault, RunError::TimedOut { .. }), "{fault}");
    for pid in std::fs::read_to_string(note).unwrap().split_whitespace() {
        is_gone(pid).await;
    }
}

#[tokio::test]
async fn nobody_waits_for_a_grandchild_that_holds_the_pipes() {
    let output = within(runner().run(&sh("sleep 1000 & echo $!"), None, LONG)).await.unwrap();
    assert_eq!(output.exit, Exit::Code(0));
    let pid = Pid::from_raw(output.text().trim().parse().unwrap()).unwrap();
    // It was no fault and lives on: this test started it, and ends it.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_any_more_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let script = sh(&format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", note.display()));
    let runner = runner();
    let begun = async {
        while !note.exists() {
            tokio::task::yield_now().await;
        }
    };
    within(async {
        tokio::select! {
            _ = runner.run(&script, None, LONG) => panic!("it sleeps"),
            () = begun => {}
        }
    })
    .await;
    is_gone(&std::fs::read_to_string(note).unwrap()).await;
}

#[tokio::test]
async fn a_program_that_heeds_is_asked_and_not_killed() {
    let runner = runner();
    let (process, _, stdout) =
        begin(&runner, "exec 2>&-; trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done", false);
    let _ = lines::<1>(stdout).await;
    assert!(process.is_alive());
    assert_eq!(within(process.end(LONG)).await, End::Yielded(Exit::Code(9)));
    assert!(!process.is_alive());
    assert_eq!(process.end(LONG).await, End::Yielded(Exit::Code(9)));
}

#[tokio::test]
async fn a_program_that_does_not_heed_is_killed_with_its_group() {
    let runner = runner();
    let (process, _, stdout) = begin(&runner, "trap '' TERM; sleep 1000 & echo $!; wait; wait", false);
    let ([child], _reader) = lines(stdout).await;
    assert_eq!(within(process.end(Duration::from_millis(50))).await, End::Forced);
    is_gone(&child).await;
    assert_eq!(within(process.ended()).await, Exit::Signal(9));
}

#[tokio::test]
async fn who_outlives_an_asked_leader_is_killed() {
    let runner = runner();
    let script = "(trap '' TERM; echo up; exec sleep 1000) & trap 'exit 0' TERM; echo $!; wait";
    let (process, _, stdout) = begin(&runner, script, false);
    let (both, _reader) = lines::<2>(stdout).await;
    let child = both.iter().find(|line| line.trim() != "up").unwrap();
    assert_eq!(within(process.end(LONG)).await, End::Yielded(Exit::Code(0)));
    is_gone(child).await;
}

#[tokio::test]
async fn what_a_command_left_in_the_background_lives_on_after_its_own_end() {
    let runner = runner();
    let (process, _, stdout) = begin(&runner, "sleep 1000 & echo $!", false);
    let ([child], _reader) = lines(stdout).await;
    assert_eq!(within(process.ended()).await, Exit::Code(0));
    let pid = Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn what_still_runs_is_killed_with_its_runner() {
    let runner = runner();
    let (process, _, stdout) = begin(&runner, "echo $$; sleep 1000", false);
    let ([pid], _reader) = lines(stdout).await;
    drop(runner);
    is_gone(&pid).await;
    assert_eq!(within(process.ended()).await, Exit::SandboxEnded);
    assert!(!process.is_alive());
}

#[tokio::test]
async fn a_started_program_can_be_talked_to() {
    let runner = runner();
    let (process, stdin, stdout) = begin(&runner, "read line; echo \"got $line\"", true);
    let mut stdin = Sender::from_owned_fd(stdin.unwrap()).unwrap();
    stdin.write_all(b"it\n").await.unwrap();
    let ([line], _reader) = lines(stdout).await;
    assert_eq!(line, "got it\n");
    assert_eq!(within(process.ended()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_terminal_has_the_size_and_the_name_that_were_asked_for() {
    let terminal = Terminal { rows: 31, columns: 97, kind: "xterm-256color".to_owned() };
    let runner = runner();
    let argv = sh("stty size; echo $TERM; test -t 0 && test -t 2 && echo both");
    let (process, ends) = runner.start(&argv, true, &Streams::Terminal(terminal)).unwrap();
    let Ends::Terminal(master) = ends else { panic!("a terminal was asked for") };
    assert_eq!(within(process.ended()).await, Exit::Code(0));
    let read = tokio::task::spawn_blocking(move || {
        let mut text = Vec::new();
        // Nobody holds the other end any more, which a terminal says with EIO once all was read.
        let fault = std::fs::File::from(master).read_to_end(&mut text).unwrap_err();
        assert_eq!(fault.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
        String::from_utf8(text).unwrap()
    });
    assert_eq!(within(read).await.unwrap(), "31 97\r\nxterm-256color\r\nboth\r\n");
}

/// Says what it was told, and counts the end as proven when the program heeded.
struct Told;

impl Ending for Told {
    fn prove(&self, end: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move {
            match end {
                End::Yielded(_) => Ok(Killed::Command),
                End::Forced => Ok(Killed::Sandbox),
            }
        })
    }

    fn exit(&self, exit: Exit) -> Pending<'_, Exit> {
        Box::pin(async { if exit == Exit::Code(124) { Exit::SandboxEnded } else { exit } })
    }
}

#[tokio::test]
async fn what_an_end_proves_is_the_backends_to_say() {
    let runner = runner();
    let start = |script: &str| {
        let (process, ends) = runner.start(&sh(script), false, &Streams::Pipes).unwrap();
        started(process, ends, Arc::new(Told)).unwrap()
    };
    let mut heeds = start("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done");
    within(heeds.stdout.read_u8()).await.unwrap();
    assert!(heeds.command.is_populated());
    assert_eq!(within(heeds.command.kill()).await.unwrap(), Killed::Command);
    assert!(!heeds.command.is_populated());
    assert_eq!(within(start("exit 124").command.ended()).await, Exit::SandboxEnded);
    assert_eq!(within(start("exit 3").command.ended()).await, Exit::Code(3));
}

#[tokio::test]
async fn all_that_runs_for_a_tenant_is_ended_and_nothing_of_others() {
    let (runner, running) = (runner(), Running::default());
    let [a, b] = ["a", "b"].map(|name| kit::Tenant::parse(name).unwrap());
    let processes: Vec<_> = [&a, &a, &b]
        .into_iter()
        .map(|tenant| {
            let (process, ..) = begin(&runner, "sleep 1000", false);
            running.add(tenant, process.clone());
            process
        })
        .collect();
    within(running.end(&a, LONG)).await;
    assert_eq!(processes.iter().map(Process::is_alive).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((running.has(&a), running.has(&b)), (false, true));
    within(running.end_all(LONG)).await;
    assert!(!running.has(&b) && !processes[2].is_alive());
}
