//! A stdio MCP server as a child process, and the one place that starts it.
//!
//! It is started as it is given, with no shell, in a process group of its own, with a cleared environment. Where the
//! system can hand orphans to one of their forebears, a keeper stands between, and with it ends everything that the
//! server has started, also when the bridge dies without a word; what a killed keeper leaves is ended by the bridge. Elsewhere the server's group is ended: its input is
//! closed, then SIGTERM, then SIGKILL; what left the group is out of reach there.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::orphans;

/// What is started for each session.
#[derive(Clone, Debug)]
pub struct Program {
    pub command: OsString,
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs; where the bridge runs when absent.
    pub directory: Option<PathBuf>,
    /// The words that start [`keeper_main`](crate::keeper_main); none where there is no such thing.
    pub keeper: Vec<OsString>,
}

/// A child that was started, with its three pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

/// A running child. Dropping it kills its group; a keeper ends everything once its input is closed.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    is_kept: bool,
}

impl Program {
    /// Starts it; `patience` is how long it may take to end, once asked to and once told.
    pub(crate) fn start(&self, patience: Duration) -> io::Result<Started> {
        let mut prepared = self.prepared(patience);
        let (mut child, group) = orphans::start(|| prepared.spawn())?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Started { process: Process { child, group, is_kept: !self.keeper.is_empty() }, input, output, errors })
    }

    #[expect(clippy::disallowed_methods, reason = "this is the room that starts stdio servers")]
    fn prepared(&self, patience: Duration) -> Command {
        let kept = OsString::from(patience.as_millis().to_string());
        let kept = (!self.keeper.is_empty()).then_some(&kept);
        let mut words = self.keeper.iter().chain(kept).chain([&self.command]).chain(&self.arguments);
        let mut command = Command::new(words.next().unwrap_or(&self.command));
        command.args(words).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        // A keeper that is killed cannot end anything.
        command.process_group(0).kill_on_drop(self.keeper.is_empty());
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

    /// Ends the child, whose input has been closed already, and waits until it is gone.
    pub(crate) async fn end(mut self, patience: Duration) {
        let child = self.group;
        self.end_child(patience).await;
        if let Some(child) = child {
            orphans::ended(child);
        }
        // A keeper that ended by itself has left nobody.
        #[cfg(target_os = "linux")]
        if self.is_kept
            && !self.child.try_wait().is_ok_and(|status| status.is_some_and(|status| status.code().is_some()))
        {
            let _ = tokio::task::spawn_blocking(orphans::sweep).await;
        }
    }

    async fn end_child(&mut self, patience: Duration) {
        if self.is_kept {
            let whole = patience.saturating_mul(2) + KEEPERS;
            if tokio::time::timeout(whole, self.ended()).await.is_ok() {
                return;
            }
            tracing::error!("a stdio server could not be ended by its keeper");
        } else if tokio::time::timeout(patience, self.ended()).await.is_err() {
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
        if !self.is_kept {
            self.signal(Signal::KILL);
        }
    }
}

/// How long a keeper may take to kill what is left, and a little more.
pub(crate) const KEEPERS: Duration = Duration::from_secs(6);
