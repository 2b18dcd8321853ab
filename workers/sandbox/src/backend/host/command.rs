//! A tenant's command that is a program of the host.

use std::io;
use std::sync::Arc;

use tokio::net::unix::pipe;

use super::local::GRACE;
use super::{End, Process};
use crate::backend::{BackendError, Command, ControlLost, Direct, Ends, Exit, Killed, Pending, Started};

/// What the end of a program proves about the tenant's processes behind it, and what is done where it proves nothing.
pub trait Ending: Send + Sync + 'static {
    /// Called when a command was to be ended and its program has: the command's whole tree is dead when this returns well.
    fn prove(&self, end: End) -> Pending<'_, Result<Killed, ControlLost>>;

    /// Whether an end that nobody asked for took the proof along.
    fn lost(&self, _exit: &Exit) -> Option<ControlLost> {
        None
    }

    /// What the program's own end means for the command, where it is not the same. It may have to be found out.
    fn exit(&self, exit: Exit) -> Pending<'_, Exit> {
        Box::pin(async { exit })
    }
}

/// A command with streams for this process.
///
/// # Errors
/// When the ends are no pipes, or cannot be waited for.
pub fn started(process: Process, ends: Ends, ending: Arc<dyn Ending>) -> Result<Started, BackendError> {
    let streams = |ends| match ends {
        Ends::Pipes { stdin, stdout, stderr } => {
            let stdin = stdin.map(pipe::Sender::from_owned_fd).transpose()?;
            Ok((stdin, pipe::Receiver::from_owned_fd(stdout)?, pipe::Receiver::from_owned_fd(stderr)?))
        }
        Ends::Terminal(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    };
    match streams(ends) {
        Ok((stdin, stdout, stderr)) => Ok(Started {
            stdin: stdin.map(|stdin| Box::new(stdin) as _),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            command: Box::new(HostCommand { process, ending }),
        }),
        Err(source) => {
            process.abandon();
            Err(BackendError::Step { step: "take the streams of a command".to_owned(), source })
        }
    }
}

/// A command with streams for somebody else.
#[must_use]
pub fn direct(process: Process, ends: Ends, ending: Arc<dyn Ending>) -> Direct {
    Direct { ends, command: Box::new(HostCommand { process, ending }) }
}

struct HostCommand {
    process: Process,
    ending: Arc<dyn Ending>,
}

impl Command for HostCommand {
    fn ended(&self) -> Pending<'_, Exit> {
        Box::pin(async { self.ending.exit(self.process.ended().await).await })
    }

    fn kill(&self) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async {
            let end = self.process.end(GRACE).await;
            self.ending.prove(end).await
        })
    }

    fn lost(&self) -> Option<ControlLost> {
        self.ending.lost(&self.process.exit()?)
    }

    /// Of what lives on behind the program nothing is known here.
    fn is_populated(&self) -> bool {
        self.process.is_alive()
    }

    fn population(&self) -> Option<usize> {
        None
    }

    fn lost_to_memory(&self) -> u64 {
        0
    }
}
