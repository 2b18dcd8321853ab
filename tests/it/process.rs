//! The program as a process: started, watched by its descriptors, and never waited for without a deadline.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Long enough for a loaded machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program with a cleared environment and these arguments.
pub(crate) fn playground<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    // Long runs are those of the build that is shipped.
    let built = std::env::var_os("PLAYGROUND_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_playground").into());
    let mut command = program(built);
    command.args(arguments).env("PATH", "/nowhere").env("HOME", "/nowhere").stdin(Stdio::null());
    command
}

/// Any program with a cleared environment.
#[expect(clippy::disallowed_methods, reason = "a test of processes starts them")]
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.env_clear();
    command
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let watched = Watched::of(child.id());
    let drain = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            stream.expect("piped").read_to_end(&mut all).expect("read");
            all
        })
    };
    let stdout = drain(child.stdout.take().map(|stream| Box::new(stream) as _));
    let stderr = drain(child.stderr.take().map(|stream| Box::new(stream) as _));
    if !watched.gone_within(PATIENCE) {
        child.kill().expect("killed");
        panic!("{command:?} did not end");
    }
    let status = child.wait().expect("ended");
    Output { status, stdout: stdout.join().expect("read"), stderr: stderr.join().expect("read") }
}

/// What a finished command wrote, as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A service that runs; it is killed when the test ends.
pub(crate) struct Service {
    child: Child,
    lines: Receiver<String>,
    pub(crate) log: Vec<String>,
    pub(crate) stdout: Option<std::process::ChildStdout>,
}

impl Service {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let (tell, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let stdout = child.stdout.take();
        Self { child, lines, log: Vec::new(), stdout }
    }

    /// `playground serve` on a free port with this state and these further arguments.
    pub(crate) fn serve(state: &Path, more: &[&str]) -> Self {
        let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state"]);
        command.arg(state).args(more).stdout(Stdio::null());
        Self::start(command)
    }

    /// The next line of the log that holds this text.
    pub(crate) fn line_with(&mut self, what: &str) -> String {
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(kit::clock::now())) {
                Ok(line) => {
                    self.log.push(line.clone());
                    if line.contains(what) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no line with {what:?}:\n{}", self.log.join("\n"))
                }
            }
        }
    }

    /// Waits for the ready line and yields the address in it.
    pub(crate) fn ready(&mut self) -> SocketAddr {
        let line = self.line_with("ready http://");
        address_in(&line)
    }

    /// The address of a service that was ready before.
    pub(crate) fn line_address(&self) -> SocketAddr {
        let line = self.log.iter().find(|line| line.contains("ready http://")).expect("it was ready");
        address_in(line)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.child.id()), signal).expect("signalled");
    }

    /// Waits for the end.
    pub(crate) fn ended_within(&mut self, patience: Duration) -> ExitStatus {
        assert!(Watched::of(self.child.id()).gone_within(patience), "it did not end:\n{}", self.rest());
        self.child.wait().expect("ended")
    }

    /// Ends the service in order and checks that it ended well.
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended_within(PATIENCE);
        assert_eq!(status.code(), Some(0), "{}", self.rest());
    }

    /// The child with this role, watched.
    pub(crate) fn child(&self, role: &str) -> Watched {
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            let found = children(self.pid()).into_iter().find(|child| command_line(*child).contains(role));
            if let Some(found) = found {
                return Watched::of(found);
            }
            assert!(kit::clock::now() < deadline, "no child {role}");
            std::thread::yield_now();
        }
    }

    /// Every process below this one, watched.
    pub(crate) fn family(&self) -> Vec<Watched> {
        family_of(self.pid())
    }

    /// Everything the log said, for a message.
    pub(crate) fn rest(&mut self) -> String {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(200)) {
            self.log.push(line);
        }
        self.log.join("\n")
    }
}

fn address_in(line: &str) -> SocketAddr {
    let rest = line.split("http://").nth(1).expect("an address");
    rest.split_whitespace().next().expect("an address").parse().expect("an address")
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that can be told from a later one with the same id.
pub(crate) struct Watched {
    pub(crate) id: u32,
    descriptor: OwnedFd,
}

impl Watched {
    pub(crate) fn of(id: u32) -> Self {
        Self::try_of(id).expect("the process is there")
    }

    pub(crate) fn try_of(id: u32) -> Option<Self> {
        Some(Self { id, descriptor: pidfd_open(pid(id), PidfdFlags::empty()).ok()? })
    }

    pub(crate) fn kill(&self) {
        pidfd_send_signal(&self.descriptor, Signal::KILL).expect("killed");
    }

    pub(crate) fn gone_within(&self, patience: Duration) -> bool {
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let timeout = Timespec::try_from(patience).expect("a duration");
        poll(&mut descriptors, Some(&timeout)).expect("polled") == 1
    }
}

/// Every process below this one, watched.
pub(crate) fn family_of(parent: u32) -> Vec<Watched> {
    let mut all = Vec::new();
    let mut open = vec![parent];
    while let Some(parent) = open.pop() {
        let below = children(parent);
        open.extend(&below);
        all.extend(below.into_iter().filter_map(Watched::try_of));
    }
    all
}

/// Says in the test's output that something cannot be shown on this host, and why; a fault where that is wanted.
pub(crate) fn skip(what: &str, why: &str) {
    // Not by a macro, whose output the harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED {what}: {why}");
    assert!(std::env::var_os("PLAYGROUND_FAIL_ON_SKIP").is_none(), "{what} was skipped: {why}");
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("an id")).expect("not zero")
}

pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

pub(crate) fn parent_of(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything; what follows the last one is the state and then the parent.
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(id: u32) -> String {
    std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default().replace('\0', " ")
}
