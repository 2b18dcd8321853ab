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
use crate::backend::{BackendError, CommandSpec, Shell, Started};

/// Starts a command in a running sandbox.
pub(super) async fn begin(live: Arc<Live>, spec: CommandSpec) -> Result<Started, BackendError> {
    let starting = || step("start a command");
    if spec.command.contains('\0') {
        return Err(starting()(io::Error::new(io::ErrorKind::InvalidInput, "a command cannot hold a zero byte")));
    }
    if let Some(cwd) = spec.cwd.as_ref().filter(|cwd| cwd.len() > LONGEST_PATH) {
        return Err(BackendError::NoDirectory(cwd.clone()));
    }
    let id = live.number();
    let streams = Streams::make(spec.stdin).map_err(starting())?;
    let text = if spec.command.len() > LONGEST_INLINE {
        Some(files::memory_file(spec.command.as_bytes()).map_err(starting())?)
    } else {
        None
    };
    // Control groups are files in memory: making one blocks for microseconds at most.
    let group = live.cgroup.as_ref().map(|cgroup| cgroup.command(id)).transpose().map_err(starting())?.flatten();
    let (group, folder) = group.unzip();
    let job = live.register(id, group)?;
    let order = Order::Start(Start {
        id,
        command: text.is_none().then_some(spec.command),
        login: spec.shell == Shell::Login,
        cwd: spec.cwd.clone(),
        stdin: spec.stdin,
        cgroup: folder.is_some(),
    });
    let theirs =
        [streams.theirs.0.as_ref(), Some(&streams.theirs.1), Some(&streams.theirs.2), text.as_ref(), folder.as_ref()];
    let descriptors: Vec<_> = theirs.into_iter().flatten().map(AsFd::as_fd).collect();
    let answer = live.ask(id, &order, &descriptors).await;
    match answer {
        Ok(Answer::Started) => {}
        Ok(Answer::NotStarted(Step::Directory, _)) => {
            live.forget(id);
            return Err(BackendError::NoDirectory(spec.cwd.unwrap_or_else(|| HOME.to_owned())));
        }
        Ok(Answer::NotStarted(at, fault)) => {
            live.forget(id);
            let what = match at {
                Step::Fork => "start a process for a command",
                Step::Become | Step::Directory => "become the tenant's user",
                Step::Execute => "hand a command to the shell",
            };
            return Err(step(what)(fault));
        }
        Ok(Answer::Opened(_) | Answer::Written { .. } | Answer::FileFault(_)) => {
            live.forget(id);
            return Err(starting()(io::ErrorKind::InvalidData.into()));
        }
        Err(fault) => {
            live.forget(id);
            return Err(fault);
        }
    }
    streams.started(LinuxCommand { live, job }).map_err(starting())
}

/// The pipes of one command, both ends.
struct Streams {
    theirs: (Option<OwnedFd>, OwnedFd, OwnedFd),
    ours: (Option<OwnedFd>, OwnedFd, OwnedFd),
}

impl Streams {
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
