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

    /// The same with names of its own, for a tenant that is made to try the host and is nobody's: what it makes and removes
    /// is never a tenant's.
    #[must_use]
    pub fn aside(&self) -> Self {
        match self {
            Self::Linux => Self::Linux,
            Self::Jail(settings) => Self::Jail(Box::new(settings.aside())),
            Self::Lima(settings) => {
                let instance_prefix = format!("trial-{}", settings.instance_prefix);
                Self::Lima(Box::new(lima::Settings { instance_prefix, ..(**settings).clone() }))
            }
        }
    }

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
