//! A command as a backend's caller speaks of it: what is to run, with which streams, and how it ended.

use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{ControlLost, Pending};

/// A command for the tenant's shell.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// Text for `/bin/sh`.
    pub command: String,
    /// Login shell (`-lc`) or clean shell (`-c`, no profile).
    pub shell: Shell,
    /// Guest directory to begin in, itself seen from the home directory; that one when absent.
    pub cwd: Option<String>,
    /// Whether the caller will feed standard input; otherwise it is `/dev/null`.
    pub stdin: bool,
    /// When its caller will end it. A backend whose commands can outlive this process has the host end it a while later.
    pub limit: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Login,
    Clean,
}

/// A command that runs: its streams, and the door to its end.
pub struct Started {
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub command: Box<dyn Command>,
}

/// What a command finds as its standard streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Streams {
    Pipes,
    Terminal(Terminal),
}

/// A terminal of the tenant's own, and never the one that a person sits at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// What it understands, as `TERM` names it.
    pub kind: String,
}

/// A command that runs, and this side's ends of its streams.
pub struct Direct {
    pub ends: Ends,
    pub command: Box<dyn Command>,
}

#[derive(Debug)]
pub enum Ends {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    Terminal(OwnedFd),
}

/// A command that was started. Dropping it does not end it; the backend reaps it all the same.
pub trait Command: Send + Sync {
    /// Waits for the shell itself to end; what it left in the background may live on.
    fn ended(&self) -> Pending<'_, Exit>;

    /// Ends the command's whole tree and returns when the kernel has proven that nothing of it is left.
    ///
    /// Escalates by itself to the tenant's first process; [`ControlLost`] means that not even that could be proven.
    fn kill(&self) -> Pending<'_, Result<Killed, ControlLost>>;

    /// What became of the proof, where the command's own end took it along: only then may something of it be alive that
    /// nobody can end any more. Asked after [`Command::ended`].
    fn lost(&self) -> Option<ControlLost> {
        None
    }

    /// Whether processes of this command are alive now, the shell included.
    fn is_populated(&self) -> bool;

    /// How many those are, where the backend can count them.
    fn population(&self) -> Option<usize>;

    /// How many of its processes the kernel has ended, up to the shell's end, because the tenant's memory was used up.
    /// Where the kernel counts for whole tenants only, those of the tenant since the command began.
    fn lost_to_memory(&self) -> u64;

    /// What became of it, where the command was started so that it could write nothing, as there was too much already.
    fn full(&self) -> Pending<'_, Option<Full>> {
        Box::pin(async { None })
    }
}

/// Why a command could write nothing, where the kernel does not say so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Bytes {
        used: u64,
        bound: u64,
    },
    Files {
        used: u64,
        bound: u64,
    },
    /// Folders lie so deep and so many that they cannot be counted.
    Depth,
    /// There was too much when it began, and there is not any more.
    NoLonger,
}

/// How the shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code, 0 to 255.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By the kernel, because the tenant's memory was used up.
    OutOfMemory,
    /// By the service, because the tenant's files took up more than they may.
    OverQuota,
    /// With the tenant's sandbox, which ended under it.
    SandboxEnded,
}

/// How far a kill had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The command's own tree.
    Command,
    /// The tenant's whole sandbox, since the command's own tree could not be proven dead.
    Sandbox,
}
