//! Why a backend could not do what it was asked.

use kit::Tenant;

use super::NotKept;
use crate::settings::Size;

/// No proof could be had that a tree is dead. The provider must close admission and end.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no proof that the processes of {tenant} are dead: {reason}")]
pub struct ControlLost {
    pub tenant: Tenant,
    pub reason: String,
}

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("tenant {0} has no sandbox")]
    NotProvisioned(Tenant),
    #[error("the sandbox of {tenant} is held by another playground process ({holder})")]
    Held { tenant: Tenant, holder: String },
    #[error("the directory {0} does not exist or cannot be entered")]
    NoDirectory(String),
    #[error("append-only cannot be enforced here: {0}")]
    NotEnforceable(String),
    #[error("this host cannot isolate: {0}")]
    NoIsolation(NoIsolation),
    #[error("{step}")]
    Step {
        /// What was being done, as a phrase: `mount the home of alice`.
        step: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the sandbox of {0} ended unexpectedly")]
    SandboxEnded(Tenant),
    #[error(transparent)]
    ControlLost(#[from] ControlLost),
    #[error("the sandbox of {0} is disabled by the operator")]
    Disabled(Tenant),
    #[error(
        "{wanted} cannot be promised: {free} are free and not promised to other tenants; choose a smaller --disk, or \
         promise it all the same with --overcommit"
    )]
    NoRoom { wanted: Size, free: Size },
    #[error(transparent)]
    NotKept(#[from] NotKept),
    #[error("the self-test from inside failed: {0}")]
    SelfTest(String),
    #[error("the service is stopping")]
    ShuttingDown,
}

impl BackendError {
    /// The loss of control that this is, if it is one: then the process has to end with code 11.
    #[must_use]
    pub fn control_lost(&self) -> Option<&ControlLost> {
        if let Self::ControlLost(lost) = self { Some(lost) } else { None }
    }
}

/// Which setting of the host stands in the way of isolation, and how to change it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}; {remedy}")]
pub struct NoIsolation {
    /// The kernel facility that was tried.
    pub what: String,
    /// What the kernel said.
    pub why: String,
    /// The command or setting that lifts it.
    pub remedy: String,
}

/// Why a file tool did not do its work. Each is something the tenant can understand and act on.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}: no such file or directory")]
    NotFound(String),
    #[error("{0}: permission denied")]
    Denied(String),
    #[error("{0} is a directory")]
    IsDirectory(String),
    #[error("{path} is {kind}, not a regular file")]
    NotRegular { path: String, kind: &'static str },
    #[error("{path} has {size} bytes; at most {most} can be read at once")]
    TooLarge { path: String, size: u64, most: u64 },
    #[error("no space left for {0}")]
    NoSpace(String),
    #[error("only {written} of {bytes} bytes were appended to {path}")]
    Partial { path: String, written: u64, bytes: u64 },
    /// What the file holds then is for its reader to find out.
    #[error("the work on {0} was ended before it was known how far it came")]
    Lost(String),
    #[error("{path}: {source}")]
    Other { path: String, source: std::io::Error },
    #[error(transparent)]
    Backend(#[from] BackendError),
}
