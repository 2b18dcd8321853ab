//! What an operator decides of virtual machines.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::host::Surroundings;

/// The defaults are the original's where it had one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What the names of machines begin with.
    pub instance_prefix: String,
    /// The folder that has a folder for each machine.
    pub state_root: PathBuf,
    /// A template of the operator's own, which the tenant's part is added to.
    pub template: Option<PathBuf>,
    /// The sources of the programs that tenants find at `/opt/faculties`.
    pub faculties_src: Option<PathBuf>,
    /// The user that `limactl` makes in a machine.
    pub user: String,
    /// How long one program may take: making a machine fetches an image.
    pub admin_limit_s: u64,
    pub surroundings: Surroundings,
}

impl Settings {
    /// With the original's prefix and patience.
    #[must_use]
    pub fn at(state_root: PathBuf, user: String, surroundings: Surroundings) -> Self {
        Self {
            instance_prefix: "playground-sbx".to_owned(),
            state_root,
            template: None,
            faculties_src: None,
            user,
            admin_limit_s: 600,
            surroundings,
        }
    }

    #[must_use]
    pub fn admin_limit(&self) -> Duration {
        Duration::from_secs(self.admin_limit_s)
    }
}
