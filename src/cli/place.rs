//! Where the state lies, and what else a file says where nobody says it: the flag counts before the environment, that before
//! a `playground.toml`, and this before the default.

use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::{Code, Failure};
#[cfg(feature = "mcp-http")]
use crate::config::file::File;
use crate::state::{StateDir, StateError};

/// The flags that every verb with a state takes.
#[derive(Clone, Debug, Args)]
pub(super) struct Place {
    /// Read what no flag and no variable says from the playground.toml of the service; `playground check-config
    /// --print-example` shows one.
    #[cfg(feature = "mcp-http")]
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_CONFIG")]
    config: Option<PathBuf>,

    #[arg(long, value_name = "DIR", env = "PLAYGROUND_STATE", help = HELP)]
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
    #[cfg(feature = "mcp-http")]
    pub(super) fn open(&self) -> Result<StateDir, Failure> {
        if self.is_named() {
            return self.open_or(None, Door::Open);
        }
        self.open_or(self.file()?.state.as_deref(), Door::Open)
    }

    /// The same for a verb that only looks: nothing is made, and a state that is not there is told.
    #[cfg(feature = "mcp-http")]
    pub(super) fn seen(&self) -> Result<StateDir, Failure> {
        self.seen_if_there()?.map_or_else(|| Err(StateError::Absent(self.path()?).into()), Ok)
    }

    /// The same, where one that is not there is no fault.
    #[cfg(feature = "mcp-http")]
    pub(super) fn seen_if_there(&self) -> Result<Option<StateDir>, Failure> {
        let path = self.path()?;
        if !path.try_exists().unwrap_or(true) {
            return Ok(None);
        }
        StateDir::look(&path).map(Some).map_err(Failure::from)
    }

    /// The same of a state that need not be there.
    #[cfg(feature = "mcp-http")]
    pub(super) fn seen_or_absent(&self) -> Result<StateDir, Failure> {
        self.seen_if_there()?.map_or_else(|| StateDir::at(&self.path()?).map_err(Failure::from), Ok)
    }

    /// The same of a state that need not be there, where it could be made.
    #[cfg(feature = "mcp-http")]
    pub(super) fn seen_or_possible(&self) -> Result<StateDir, Failure> {
        StateDir::look(&self.path()?).map_err(Failure::from)
    }

    /// Where the state lies, if it is there.
    #[cfg(feature = "mcp-http")]
    fn path(&self) -> Result<PathBuf, Failure> {
        let said = if self.is_named() { None } else { self.file()?.state };
        self.state.clone().or(said).map_or_else(default, Ok)
    }

    /// The same, where there are no such files.
    #[cfg(not(feature = "mcp-http"))]
    pub(super) fn open(&self) -> Result<StateDir, Failure> {
        let path = match &self.state {
            Some(path) => path.clone(),
            None => default()?,
        };
        StateDir::open(&path).map_err(Failure::from)
    }

    /// The file that was named.
    #[cfg(feature = "mcp-http")]
    pub(super) fn config(&self) -> Option<&Path> {
        // An empty variable means none, as in a shell script that leaves it unset.
        self.config.as_deref().filter(|path| !path.as_os_str().is_empty())
    }

    /// What it says; nothing where none was named.
    #[cfg(feature = "mcp-http")]
    pub(super) fn file(&self) -> Result<File, Failure> {
        file(self.config())
    }

    /// The state, with a place that counts where neither the command line nor the environment names one.
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

/// What a file says; nothing where none was named, as by an empty variable.
#[cfg(feature = "mcp-http")]
pub(super) fn file(named: Option<&Path>) -> Result<File, Failure> {
    let named = named.filter(|path| !path.as_os_str().is_empty());
    let each = |faults: Vec<_>| faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration));
    Ok(named.map(File::load).transpose().map_err(|faults| Failure::all(each(faults)))?.unwrap_or_default())
}

impl From<StateError> for Failure {
    fn from(fault: StateError) -> Self {
        let code = match &fault {
            StateError::Foreign { .. } | StateError::Open { .. } => Code::NotAllowed,
            StateError::Newer { .. } | StateError::NotDirectory(_) | StateError::NotRegular { .. } => {
                Code::Configuration
            }
            StateError::Absent(_) => Code::Missing,
            StateError::Held(_) => Code::Exists,
            StateError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Code::NotAllowed,
            StateError::Io { .. } => Code::Failed,
        };
        let hint = match &fault {
            StateError::Held(_) => Some(
                "stop the other one, or give this one a state of its own with --state DIR; the halves of a service have one each, as `playground worker --help` shows",
            ),
            StateError::Foreign { .. } => Some(
                "run this as the user whose it is, with runuser or su, or name a directory of your own with --state DIR",
            ),
            StateError::Absent(_) => Some("name the one of the service with --state DIR; nothing was made"),
            StateError::NotRegular { .. } => Some("move it away: it is made again"),
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
    let is_root = rustix::process::geteuid().is_root();
    usual(std::env::consts::OS, is_root, |name| std::env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
        Failure::message(Code::Usage, "there is no HOME to keep the state in").hint("name one with --state DIR")
    })
}

/// Where a user's state lies on a system; nowhere without a home.
fn usual(system: &str, is_root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if is_root {
        return Some(roots(system).into());
    }
    let named = |name| variable(name).filter(|path| path.is_absolute());
    let base = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("playground"))
}

/// Where root's lies: hier(7) of the BSDs has no /var/lib, and the original's store is there.
fn roots(system: &str) -> &'static Path {
    Path::new(if system == "freebsd" { "/var/db/playground" } else { "/var/lib/playground" })
}

const HELP: &str = match std::env::consts::OS.as_bytes() {
    b"freebsd" => "State directory [default: /var/db/playground as root, else ~/.local/state/playground]",
    _ => "State directory [default: /var/lib/playground as root, else ~/.local/state/playground]",
};

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{HELP, roots, usual};

    /// With these variables and no others.
    fn check(system: &str, is_root: bool, variables: &[(&str, &str)], wanted: Option<&str>) {
        let found = usual(system, is_root, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
        });
        assert_eq!(found.as_deref(), wanted.map(Path::new), "{system}, {is_root}, {variables:?}");
    }

    #[test]
    fn the_state_of_root_lies_where_the_system_keeps_such_things() {
        let home = [("HOME", "/root"), ("XDG_STATE_HOME", "/x")];
        check("freebsd", true, &home, Some("/var/db/playground"));
        check("linux", true, &home, Some("/var/lib/playground"));
        check("macos", true, &[], Some("/var/lib/playground"));
        assert!(HELP.contains(roots(std::env::consts::OS).to_str().expect("letters")), "{HELP}");
    }

    #[test]
    fn the_state_of_anybody_else_lies_at_home() {
        for system in ["linux", "freebsd", "macos"] {
            check(system, false, &[("HOME", "/home/me")], Some("/home/me/.local/state/playground"));
            check(system, false, &[("HOME", "/home/me"), ("XDG_STATE_HOME", "/x")], Some("/x/playground"));
            check(system, false, &[("XDG_STATE_HOME", "x"), ("HOME", "h")], None);
            check(system, false, &[], None);
        }
    }
}
