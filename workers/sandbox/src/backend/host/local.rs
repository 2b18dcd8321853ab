//! Runs programs on this very host.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use kit::tasks::Tasks;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::lines::Lines;
use super::process::Process;
use super::{Argv, Halt, Output, RunError, Runner, Surroundings, last_lines};
use crate::backend::{Ends, Exit, Pending, Streams, Terminal};
use crate::sys::terminal;

/// Programs of this host, each in a process group of its own. Those that still run are killed when it is dropped.
pub struct Local {
    surroundings: Surroundings,
    is_root: bool,
    grace: Duration,
    tasks: Tasks,
    halt: Halt,
}

impl Local {
    #[must_use]
    pub fn new(surroundings: Surroundings) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { surroundings, is_root, grace: GRACE, tasks: Tasks::new(), halt: Halt::default() }
    }

    /// The same with less patience, for tests of programs that do not heed.
    #[cfg(test)]
    pub(crate) fn impatient(surroundings: Surroundings) -> Self {
        Self { grace: Duration::from_millis(50), ..Self::new(surroundings) }
    }

    fn spawn(&self, argv: &Argv, stdio: [Stdio; 3], leads: Leads) -> io::Result<Process> {
        let words = argv.words(self.is_root);
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let [stdin, stdout, stderr] = stdio;
        #[expect(clippy::disallowed_methods, reason = "this is the runner")]
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).env_clear().envs(self.surroundings.iter());
        command.stdin(stdin).stdout(stdout).stderr(stderr).current_dir("/");
        match leads {
            Leads::Group => drop(command.process_group(0)),
            Leads::Session => terminal::control(command.as_std_mut()),
        }
        let (process, keeping) = Process::watch(command.spawn()?).ok_or(io::ErrorKind::NotFound)?;
        self.tasks.start(keeping);
        Ok(process)
    }

    fn begin(&self, argv: &Argv, stdin: bool) -> io::Result<(Process, Pipes)> {
        let (stdout, for_stdout) = io::pipe()?;
        let (stderr, for_stderr) = io::pipe()?;
        let (for_stdin, stdin) = if stdin {
            let (for_stdin, stdin) = io::pipe()?;
            (Stdio::from(for_stdin), Some(stdin.into()))
        } else {
            (Stdio::null(), None)
        };
        let process = self.spawn(argv, [for_stdin, for_stdout.into(), for_stderr.into()], Leads::Group)?;
        Ok((process, Pipes { stdin, stdout: stdout.into(), stderr: stderr.into() }))
    }

    async fn carry(
        &self,
        argv: &Argv,
        input: Option<&[u8]>,
        limit: Duration,
        told: Option<&(dyn Fn(&str) + Sync)>,
    ) -> Result<Output, RunError> {
        let program = || argv.program().to_owned();
        if self.halt.take() {
            return Err(RunError::BrokenOff { program: program(), elsewhere: None });
        }
        let (process, pipes) = self.begin(argv, input.is_some()).map_err(not_started(argv))?;
        let ending = EndOnDrop(&process);
        let mut written = Written { out: Vec::new(), err: Vec::new(), lines: Lines::to(told) };
        let captured = tokio::select! {
            captured = timeout(limit, capture(&process, pipes, input, &mut written)) => Some(captured),
            () = self.halt.taken() => None,
        };
        if let Some(Ok(Ok(exit))) = captured {
            drop(ending);
            return Ok(Output { exit, stdout: written.out, stderr: written.err });
        }
        let end = process.end(self.grace).await;
        drop(ending);
        Err(match captured {
            Some(Ok(Err(CaptureError::Io(fault)))) => not_started(argv)(fault),
            Some(Ok(_)) => RunError::TooMuch { program: program(), most: MOST },
            Some(Err(_elapsed)) => {
                RunError::TimedOut { program: program(), limit, said: last_lines(&written.err), end }
            }
            None => RunError::BrokenOff { program: program(), elsewhere: None },
        })
    }

    /// At a terminal whose other end comes back, which the program controls: it is told of its size, its interrupts and its
    /// end. Where a guest has a terminal of its own, as behind `ssh` and `limactl shell`, they hand these on.
    fn begin_at_terminal(&self, argv: &Argv, terminal: &Terminal) -> io::Result<(Process, OwnedFd)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(&*name, flags, rustix::fs::Mode::empty())?;
        let size = Winsize { ws_row: terminal.rows, ws_col: terminal.columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size)?;
        let mut here = Self {
            tasks: self.tasks.clone(),
            surroundings: self.surroundings.clone(),
            halt: self.halt.clone(),
            ..*self
        };
        here.surroundings.set("TERM", &terminal.kind);
        let stdio = [slave.try_clone()?.into(), slave.try_clone()?.into(), slave.into()];
        Ok((here.spawn(argv, stdio, Leads::Session)?, master))
    }
}

impl Runner for Local {
    fn run<'a>(
        &'a self,
        argv: &'a Argv,
        input: Option<&'a [u8]>,
        limit: Duration,
    ) -> Pending<'a, Result<Output, RunError>> {
        Box::pin(self.carry(argv, input, limit, None))
    }

    fn run_telling<'a>(
        &'a self,
        argv: &'a Argv,
        limit: Duration,
        told: &'a (dyn Fn(&str) + Sync),
    ) -> Pending<'a, Result<Output, RunError>> {
        Box::pin(self.carry(argv, None, limit, Some(told)))
    }

    fn start(&self, argv: &Argv, stdin: bool, streams: &Streams) -> Result<(Process, Ends), RunError> {
        let begun = match streams {
            Streams::Pipes => self
                .begin(argv, stdin)
                .map(|(process, Pipes { stdin, stdout, stderr })| (process, Ends::Pipes { stdin, stdout, stderr })),
            Streams::Terminal(terminal) => {
                self.begin_at_terminal(argv, terminal).map(|(process, master)| (process, Ends::Terminal(master)))
            }
        };
        begun.map_err(not_started(argv))
    }

    fn is_local_root(&self) -> bool {
        self.is_root
    }

    fn halt(&self) -> Option<&Halt> {
        Some(&self.halt)
    }
}

/// What a program is the first of.
enum Leads {
    Group,
    /// And so of a group too.
    Session,
}

/// This side's ends.
struct Pipes {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

enum CaptureError {
    TooMuch,
    Io(io::Error),
}

/// Kills what was to be waited for when nobody waits any more.
struct EndOnDrop<'a>(&'a Process);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if self.0.is_alive() {
            self.0.abandon();
        }
    }
}

/// What a program wrote so far.
struct Written<'a> {
    out: Vec<u8>,
    err: Vec<u8>,
    lines: Lines<'a>,
}

/// Feeds a program, and takes what it writes until it has ended and both pipes have, or are silent in other hands.
async fn capture(
    process: &Process,
    pipes: Pipes,
    input: Option<&[u8]>,
    written: &mut Written<'_>,
) -> Result<Exit, CaptureError> {
    let io = CaptureError::Io;
    let stdin = pipes.stdin.map(pipe::Sender::from_owned_fd).transpose().map_err(io)?;
    let stdout = pipe::Receiver::from_owned_fd(pipes.stdout).map_err(io)?;
    let stderr = pipe::Receiver::from_owned_fd(pipes.stderr).map_err(io)?;
    let Written { out, err, lines } = written;
    let feeding = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program that does not read is no fault.
            let _ = stdin.write_all(input).await;
        }
    };
    let taking = async { tokio::try_join!(take(stdout, out, |_| {}), take(stderr, err, |all| lines.hear(all))) };
    let ended = process.ended();
    tokio::pin!(feeding, taking, ended);
    let (mut fed, mut taken) = (false, false);
    let exit = loop {
        tokio::select! {
            biased;
            took = &mut taking, if !taken => {
                took?;
                taken = true;
            }
            () = &mut feeding, if !fed => fed = true,
            exit = &mut ended => break exit,
        }
    };
    if !taken {
        // What it wrote lies in the pipes. Whoever holds them still may do so for ever.
        match timeout(SILENCE, taking).await {
            Ok(took) => drop(took?),
            Err(_held_by_others) => {}
        }
    }
    Ok(exit)
}

async fn take(mut from: pipe::Receiver, into: &mut Vec<u8>, mut seen: impl FnMut(&[u8])) -> Result<(), CaptureError> {
    loop {
        if into.len() > MOST {
            return Err(CaptureError::TooMuch);
        }
        match from.read_buf(into).await {
            Ok(0) => return Ok(()),
            Ok(_) => seen(into),
            Err(fault) => return Err(CaptureError::Io(fault)),
        }
    }
}

fn not_started(argv: &Argv) -> impl FnOnce(io::Error) -> RunError {
    let program = argv.program().to_owned();
    |source| RunError::NotStarted { program, source }
}

/// The original's; a list of all that a host has is far below.
const MOST: usize = 16 << 20;

/// The wrapper that reaps a tenant's command gives it five seconds of these.
pub(super) const GRACE: Duration = Duration::from_secs(7);

/// How long pipes are listened to that something else than the program holds.
const SILENCE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests;
