//! A stdio MCP server as a child process, and the one place that starts it.
//!
//! It is started as it is given, with no shell, in a process group of its own, with a cleared environment. The whole
//! group is ended: first its input is closed, then SIGTERM, then SIGKILL. A process that left the group by itself is out
//! of reach. When the bridge dies without a word, the child finds the end of its input, which every stdio server takes
//! as its own; a signal at the parent's death would have to be asked for between fork and exec, for which there is no
//! safe way.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// What is started for each session.
#[derive(Clone, Debug)]
pub struct Program {
    pub command: OsString,
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs; where the bridge runs when absent.
    pub directory: Option<PathBuf>,
}

/// A child that was started, with its three pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

/// A running child. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Program {
    pub(crate) fn start(&self) -> io::Result<Started> {
        let mut child = self.prepared().spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Started { process: Process { child, group }, input, output, errors })
    }

    #[expect(clippy::disallowed_methods, reason = "this is the room that starts stdio servers")]
    fn prepared(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

impl Process {
    /// Waits for the child's end. Dropping the future loses nothing.
    pub(crate) async fn ended(&mut self) {
        if let Err(fault) = self.child.wait().await {
            tracing::warn!(%fault, "a child's end cannot be waited for");
        }
    }

    /// Ends the group, whose input has been closed already, and waits until it is gone.
    pub(crate) async fn end(mut self, patience: Duration) {
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(patience, self.ended()).await;
        }
        // Also when the leader has gone: what it forked is in its group, which keeps the number while one is left.
        self.signal(Signal::KILL);
        self.ended().await;
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that nobody is left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
