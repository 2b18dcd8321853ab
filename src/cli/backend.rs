//! Which backend isolates tenants, with the original's flags for those that are not built yet.

use clap::{Args, ValueEnum};

use super::failure::{Code, Failure};

/// The choice of backend.
#[derive(Clone, Debug, Args)]
pub(super) struct Backend {
    /// What isolates tenants: linux, jail or lima [default: linux].
    #[arg(long, value_enum, hide_possible_values = true)]
    backend: Option<Name>,

    #[command(flatten)]
    later: Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    Linux,
    Jail,
    Lima,
}

/// Flags of the original's backends: read so that its command lines still work, and without a meaning here.
#[derive(Clone, Debug, Args)]
struct Later {
    #[arg(long, hide = true)]
    instance_prefix: Option<String>,
    #[arg(long, hide = true)]
    state_root: Option<String>,
    #[arg(long, hide = true)]
    template: Option<String>,
    #[arg(long, hide = true)]
    faculties_src: Option<String>,
    #[arg(long, hide = true)]
    jail_host: Option<String>,
    #[arg(long, hide = true)]
    jail_local: bool,
    #[arg(long, hide = true)]
    jail_template_snapshot: Option<String>,
    #[arg(long, hide = true)]
    jail_dataset_parent: Option<String>,
    #[arg(long, hide = true)]
    jail_prefix: Option<String>,
    #[arg(long, hide = true)]
    jail_pile_root: Option<String>,
    #[arg(long, hide = true)]
    jail_bootstrap_pile: Option<String>,
    #[arg(long, hide = true)]
    jail_external_rctl: bool,
    #[arg(long, hide = true)]
    jail_clone_refquota: Option<String>,
    #[arg(long, hide = true)]
    jail_pile_quota: Option<String>,
    #[arg(long, hide = true)]
    jail_relations_collection: Option<String>,
}

impl Backend {
    /// Says no, by name, when a sandbox is needed from a backend that this build does not have.
    pub(super) fn needed(&self) -> Result<(), Failure> {
        match self.backend {
            None | Some(Name::Linux) => Ok(()),
            Some(Name::Jail | Name::Lima) => Err(not_built()),
        }
    }

    /// The name of what was said.
    pub(super) fn said(&self) -> Option<&'static str> {
        self.backend.map(|name| match name {
            Name::Linux => "linux",
            Name::Jail => "jail",
            Name::Lima => "lima",
        })
    }

    /// What the original wrote into a credential, for a store that stays in its format.
    pub(super) fn name(&self) -> &'static str {
        self.said().unwrap_or("linux")
    }
}

/// A sandbox is needed from a backend that this build does not have.
pub(super) fn not_built() -> Failure {
    Failure::message(Code::Configuration, "jail and lima come in a later release; on Linux use --backend linux")
}
