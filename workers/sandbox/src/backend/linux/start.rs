//! Starting one command in a running sandbox, as the service does it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use super::command::LinuxCommand;
use super::files;
use super::layout::step;
use super::live::{Answer, Live};
use super::wire::{HOME, LONGEST_INLINE, LONGEST_PATH, Order, Start, Step};
use crate::backend::{BackendError, Command, CommandSpec, Direct, Ends, Shell, Started, Streams, Terminal};

/// Starts a command in a running sandbox.
pub(super) async fn begin(live: Arc<Live>, spec: CommandSpec) -> Result<Started, BackendError> {
    let pipes = Pipes::make(spec.stdin).map_err(starting())?;
    let (command, _) = order(live, spec, Some(&pipes), None).await?;
    pipes.started(command).map_err(starting())
}

/// Starts a command whose streams somebody else reads and writes.
pub(super) async fn begin_direct(live: Arc<Live>, spec: CommandSpec, streams: Streams) -> Result<Direct, BackendError> {
    match streams {
        Streams::Pipes => {
            let pipes = Pipes::make(spec.stdin).map_err(starting())?;
            let (command, _) = order(live, spec, Some(&pipes), None).await?;
            let (stdin, stdout, stderr) = pipes.ours;
            Ok(Direct { ends: Ends::Pipes { stdin, stdout, stderr }, command: Box::new(command) })
        }
        Streams::Terminal(terminal) => {
            let (command, outer) = order(live, spec, None, Some(terminal)).await?;
            // A command that ended before it could say so has no terminal to show.
            let outer = outer.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof)).map_err(starting())?;
            Ok(Direct { ends: Ends::Terminal(outer), command: Box::new(command) })
        }
    }
}

/// Orders a command and waits until it runs; the descriptor is this side of its terminal.
async fn order(
    live: Arc<Live>,
    spec: CommandSpec,
    pipes: Option<&Pipes>,
    terminal: Option<Terminal>,
) -> Result<(LinuxCommand, Option<OwnedFd>), BackendError> {
    if spec.command.contains('\0') {
        return Err(starting()(io::Error::new(io::ErrorKind::InvalidInput, "a command cannot hold a zero byte")));
    }
    if let Some(cwd) = spec.cwd.as_ref().filter(|cwd| cwd.len() > LONGEST_PATH) {
        return Err(BackendError::NoDirectory(cwd.clone()));
    }
    let full = match &live.quota {
        Some(quota) => quota.is_over().await,
        None => false,
    };
    let id = live.number();
    let text = if spec.command.len() > LONGEST_INLINE {
        Some(files::memory_file(spec.command.as_bytes()).map_err(starting())?)
    } else {
        None
    };
    // Control groups are files in memory: making one blocks for microseconds at most.
    let group = live.cgroup.as_ref().map(|cgroup| cgroup.command(id)).transpose().map_err(starting())?.flatten();
    let (group, folder) = group.unzip();
    let job = live.register(id, group, full)?;
    let order = Order::Start(Start {
        id,
        command: text.is_none().then_some(spec.command),
        login: spec.shell == Shell::Login,
        cwd: spec.cwd.clone(),
        stdin: spec.stdin && terminal.is_none(),
        terminal,
        cgroup: folder.is_some(),
        full,
    });
    let streams = pipes.map(|pipes| [pipes.theirs.0.as_ref(), Some(&pipes.theirs.1), Some(&pipes.theirs.2)]);
    let theirs = streams.into_iter().flatten().chain([text.as_ref(), folder.as_ref()]);
    let descriptors: Vec<_> = theirs.flatten().map(AsFd::as_fd).collect();
    let asking = live.ask(id, &order, &descriptors);
    let Ok(answer) = tokio::time::timeout(LONGEST_START * live.deadline, asking).await else {
        // The tenant can stop a process of its user in the moment before that becomes the command.
        LinuxCommand { live, job }.kill().await?;
        return Err(starting()(io::ErrorKind::TimedOut.into()));
    };
    match answer {
        Ok(Answer::Started(outer)) => Ok((LinuxCommand { live, job }, outer)),
        answer => {
            live.forget(id);
            Err(refused(answer, spec.cwd))
        }
    }
}

/// Why a command does not run.
fn refused(answer: Result<Answer, BackendError>, cwd: Option<String>) -> BackendError {
    match answer {
        Ok(Answer::NotStarted(Step::Directory, _)) => BackendError::NoDirectory(cwd.unwrap_or_else(|| HOME.to_owned())),
        Ok(Answer::NotStarted(at, fault)) => step(match at {
            Step::Fork => "start a process for a command",
            Step::Become | Step::Directory => "become the tenant's user",
            Step::Terminal => "make a terminal for a command",
            Step::Execute => "hand a command to the shell",
        })(fault),
        Ok(
            Answer::Started(_)
            | Answer::Opened(_)
            | Answer::Written { .. }
            | Answer::Made
            | Answer::FileFault(_)
            | Answer::SelfTested(_),
        ) => starting()(io::ErrorKind::InvalidData.into()),
        Err(fault) => fault,
    }
}

fn starting() -> impl FnOnce(io::Error) -> BackendError {
    step("start a command")
}

/// The pipes of one command, both ends.
struct Pipes {
    theirs: (Option<OwnedFd>, OwnedFd, OwnedFd),
    ours: (Option<OwnedFd>, OwnedFd, OwnedFd),
}

impl Pipes {
    fn make(stdin: bool) -> io::Result<Self> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let (stdin, to_stdin) =
            if stdin { pipe().map(|(read, write)| (Some(read), Some(write)))? } else { (None, None) };
        let (from_stdout, stdout) = pipe()?;
        let (from_stderr, stderr) = pipe()?;
        Ok(Self { theirs: (stdin, stdout, stderr), ours: (to_stdin, from_stdout, from_stderr) })
    }

    fn started(self, command: LinuxCommand) -> io::Result<Started> {
        let stdin = match self.ours.0 {
            Some(stdin) => Some(Box::new(pipe::Sender::from_owned_fd(stdin)?) as Box<_>),
            None => None,
        };
        Ok(Started {
            stdin,
            stdout: Box::new(pipe::Receiver::from_owned_fd(self.ours.1)?),
            stderr: Box::new(pipe::Receiver::from_owned_fd(self.ours.2)?),
            command: Box::new(command),
        })
    }
}

/// In deadlines of a kill: long enough for a host that is so busy that nothing moves for seconds.
const LONGEST_START: u32 = 4;
