//! The process between the bridge and one stdio server, which sees to it that nothing of the server outlives it.
//!
//! ```text
//! bridge ── keeper ── server ── whatever it starts
//! ```
//!
//! The keeper asks the system for the orphans among its descendants, so a process that leaves its group, its session or
//! its parent still ends up as the keeper's child, and is killed with the rest. It does so when the server has ended, and
//! when the input's other end is closed, which is how the bridge asks for the end and what its own death looks like: the
//! server has a while to end by itself, then it gets SIGTERM, then everything gets SIGKILL.
//!
//! What is not promised: the end of processes that changed to another user while the keeper is not root, of processes
//! that fork faster than they can be counted. What a keeper leaves that is killed by force is the bridge's to end
//! (`orphans`); nobody ends it when the bridge is killed at the same time.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use kit::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open, set_child_subreaper,
    wait,
};

/// The whole of a keeper's life. Its arguments are a verb, its patience in milliseconds, and the command.
#[must_use]
pub fn keeper_main() -> ExitCode {
    let mut words = std::env::args_os().skip(2);
    let patience = words.next().and_then(|word| word.to_str()?.parse().ok()).map(Duration::from_millis);
    let (Some(patience), Some(command)) = (patience, words.next()) else {
        return complain("a keeper is started by the bridge alone");
    };
    match keep(&command, words.collect(), patience) {
        Ok(code) => ExitCode::from(code),
        Err(fault) => complain(&format!("start {}: {fault}", command.display())),
    }
}

fn keep(command: &OsString, arguments: Vec<OsString>, patience: Duration) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), LOWEST)?;
    let mut server = start(command, arguments)?;
    let ended = i32::try_from(server.id()).ok().and_then(Pid::from_raw).map(|server| {
        // The pipes are the server's alone, or nobody would learn that it closed them.
        let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        let end = pidfd_open(server, PidfdFlags::empty())?;
        see_to_the_end(&end, &input, server, patience)
    });
    let status = server.try_wait();
    sweep();
    ended.unwrap_or(Ok(()))?;
    let status = status?.or(server.try_wait().ok().flatten());
    let code = status.and_then(|status| status.code().or_else(|| Some(SIGNALLED + status.signal()?)));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

#[expect(clippy::disallowed_methods, reason = "this is the room that starts stdio servers")]
fn start(command: &OsString, arguments: Vec<OsString>) -> io::Result<Child> {
    // The standard streams are the bridge's pipes, the environment is what it chose.
    Command::new(command).args(arguments).process_group(0).spawn()
}

/// Returns when the server has ended or has had its time.
fn see_to_the_end(end: &OwnedFd, input: &OwnedFd, server: Pid, patience: Duration) -> io::Result<()> {
    let asked_to_end = |deadline: Option<Instant>| until(end, None, deadline);
    if until(end, Some(input), None)? == Seen::Ended {
        return Ok(());
    }
    if asked_to_end(clock::now().checked_add(patience))? == Seen::Ended {
        return Ok(());
    }
    // An error means that nobody is left.
    let _ = kill_process_group(server, Signal::TERM);
    asked_to_end(clock::now().checked_add(patience)).map(|_seen| ())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Ended,
    Closed,
    Late,
}

/// Waits until the server ends, the other end of its input is closed, or the deadline is there.
fn until(end: &OwnedFd, input: Option<&OwnedFd>, deadline: Option<Instant>) -> io::Result<Seen> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut watched = vec![PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)];
        watched.extend(input.map(|input| PollFd::from_borrowed_fd(input.as_fd(), PollFlags::empty())));
        match poll(&mut watched, timeout.as_ref()) {
            Ok(0) => return Ok(Seen::Late),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(fault) => return Err(fault.into()),
        }
        let is_ready = |at: usize| watched.get(at).is_some_and(|watched| !watched.revents().is_empty());
        if is_ready(0) {
            return Ok(Seen::Ended);
        }
        if is_ready(1) {
            return Ok(Seen::Closed);
        }
    }
}

/// Kills the children, and theirs as they become ours, until there are none.
fn sweep() {
    for _ in 0..MOST_ROUNDS {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_ended)) => {}
                // Some are ending still.
                Ok(None) => break,
                Err(_none) => return,
            }
        }
        std::thread::sleep(ROUND);
    }
    complain("processes of a stdio server could not be ended");
}

/// Of this process.
pub(crate) fn children() -> Vec<Pid> {
    let ours = getpid().as_raw_nonzero().get();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    processes.filter(|process| parent(*process) == Some(ours)).filter_map(Pid::from_raw).collect()
}

fn parent(process: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // A name may hold anything, so what follows is counted from its end: the state, then the parent.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn complain(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(FAILED)
}

/// Above the standard descriptors.
const LOWEST: i32 = 3;
const FAILED: u8 = 127;
/// As shells tell of a signal.
const SIGNALLED: i32 = 128;
pub(crate) const ROUND: Duration = Duration::from_millis(5);
pub(crate) const MOST_ROUNDS: u32 = 1000;
