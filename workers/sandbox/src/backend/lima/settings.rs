//! What an operator decides of virtual machines.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::name::is_prefix;
use crate::backend::host::Surroundings;
use crate::backend::{BackendError, NoIsolation};

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
    /// The bundle that was built of them, which machines that are made from now on mount.
    pub faculties: Option<PathBuf>,
    /// A pile of the operator's for the tenant that is made next, with its key beside it.
    pub faculty_pile: Option<PathBuf>,
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
            faculties: None,
            faculty_pile: None,
            user,
            admin_limit_s: 600,
            surroundings,
        }
    }

    /// Finds what cannot be meant.
    pub(super) fn check(&self) -> Result<(), BackendError> {
        let refuse = |why: String| {
            let (what, remedy) = ("the settings of lima".to_owned(), "put it right".to_owned());
            Err(BackendError::NoIsolation(NoIsolation { what, why, remedy }))
        };
        if !is_prefix(&self.instance_prefix) {
            return refuse(format!(
                "`{}` cannot begin a machine's name: up to 20 letters and digits, in parts with one of . _ - between",
                self.instance_prefix
            ));
        }
        if !self.state_root.is_absolute() {
            return refuse(format!("the state root {} is no absolute path", self.state_root.display()));
        }
        let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        if self.user.is_empty() || self.user.starts_with('-') || !self.user.chars().all(plain) {
            return refuse(format!("`{}` is no user for a machine; name one with PLAYGROUND_LIMA_USER", self.user));
        }
        Ok(())
    }

    #[must_use]
    pub fn admin_limit(&self) -> Duration {
        Duration::from_secs(self.admin_limit_s)
    }
}
