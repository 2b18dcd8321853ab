//! Which backend isolates tenants.

use serde::{Deserialize, Serialize};

use super::{jail, lima};

/// The choice of a backend, with what only that one has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Namespaces of this host's kernel.
    #[default]
    Linux,
    /// Jails of a FreeBSD host: this one, or another by ssh.
    Jail(Box<jail::Settings>),
    /// Virtual machines of this host, by `limactl`.
    Lima(Box<lima::Settings>),
}

impl Kind {
    /// The name of the one that is this host's own.
    pub const OWN: &str = match std::env::consts::OS.as_bytes() {
        b"freebsd" => "jail",
        b"macos" => "lima",
        _ => "linux",
    };

    /// As credentials and flags spell it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Jail(_) => "jail",
            Self::Lima(_) => "lima",
        }
    }
}
