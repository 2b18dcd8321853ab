//! Where the state lies when nobody says.

#[cfg(feature = "mcp-http")]
use std::path::Path;
use std::path::PathBuf;

use clap::Args;

use super::failure::{Code, Failure};
use crate::state::{StateDir, StateError};

/// The flag that every verb with a state takes.
#[derive(Clone, Debug, Args)]
pub(super) struct Place {
    /// State directory [default: /var/lib/playground as root, else ~/.local/state/playground].
    #[arg(long, value_name = "DIR", env = "PLAYGROUND_STATE")]
    state: Option<PathBuf>,
}

/// What a verb does with a state that it means.
#[cfg(feature = "mcp-http")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// It is made where it is not there.
    Open,
    /// Nothing is changed.
    Look,
}

impl Place {
    /// Opens the state that was named, or this user's own. It is made where it is not there.
    pub(super) fn open(&self) -> Result<StateDir, Failure> {
        let path = match &self.state {
            Some(path) => path.clone(),
            None => default()?,
        };
        StateDir::open(&path).map_err(Failure::from)
    }

    /// The same, with a place that counts where neither the command line nor the environment names one.
    #[cfg(feature = "mcp-http")]
    pub(super) fn open_or(&self, said: Option<&Path>, door: Door) -> Result<StateDir, Failure> {
        let path = match self.state.as_deref().or(said) {
            Some(path) => path.to_owned(),
            None => default()?,
        };
        let state = match door {
            Door::Open => StateDir::open(&path),
            Door::Look => StateDir::look(&path),
        };
        state.map_err(Failure::from)
    }

    /// The state that was named on the command line or in the environment.
    #[cfg(feature = "mcp-http")]
    pub(super) fn named(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// Whether a state was named on the command line or in the environment.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_named(&self) -> bool {
        self.state.is_some()
    }
}

impl From<StateError> for Failure {
    fn from(fault: StateError) -> Self {
        let code = match &fault {
            StateError::Foreign { .. } | StateError::Open { .. } => Code::NotAllowed,
            StateError::Newer { .. } | StateError::NotDirectory(_) => Code::Configuration,
            StateError::Held(_) => Code::Exists,
            StateError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Code::NotAllowed,
            StateError::Io { .. } => Code::Failed,
        };
        let hint = match &fault {
            StateError::Held(_) => Some(
                "stop the other one, or give this one a state of its own with --state DIR; the halves of a service have one each, as `playground worker --help` shows",
            ),
            StateError::Foreign { .. } => Some("name a directory of your own with --state DIR"),
            StateError::Open { .. }
            | StateError::Newer { .. }
            | StateError::NotDirectory(_)
            | StateError::Io { .. } => None,
        };
        let failure = Self::new(fault).code(code);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

fn default() -> Result<PathBuf, Failure> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/playground"));
    }
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named("XDG_STATE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("playground"))
        .ok_or_else(|| {
            Failure::message(Code::Usage, "there is no HOME to keep the state in").hint("name one with --state DIR")
        })
}
