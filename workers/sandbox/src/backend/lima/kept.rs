//! What is remembered of one tenant: whose machine it is, and where its pile lies.

use std::io;
use std::path::{Path, PathBuf};

use kit::Tenant;
use serde::{Deserialize, Serialize};

use super::made::Made;
use super::mark::Mark;
use super::step;
use crate::backend::{BackendError, PileState, Provision};
use crate::settings::TenantSettings;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    #[serde(with = "label")]
    pub(super) tenant: Tenant,
    pub(super) disabled: bool,
    pub(super) settings: TenantSettings,
    pub(super) pile: Option<Pile>,
    /// What the machine was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<Made>,
    /// What the machine carries that was made for this record. One of an earlier release carries nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<Mark>,
    /// The bundle of faculties that the machine was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bundle: Option<PathBuf>,
}

/// Where a tenant's pile lies on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pile {
    pub(super) file: PathBuf,
    /// Beside it.
    pub(super) key: Option<PathBuf>,
    /// The folders with nothing but these in them, which the machine mounts.
    pub(super) view: Option<View>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    pub(super) pile: PathBuf,
    pub(super) key: Option<PathBuf>,
}

impl Kept {
    pub(super) fn new(tenant: &Tenant, spec: &Provision, pile: Option<Pile>) -> Self {
        Self {
            tenant: tenant.clone(),
            disabled: false,
            settings: spec.settings.clone(),
            pile,
            made: None,
            mark: None,
            bundle: None,
        }
    }

    /// Finds the bundle that the machine mounts, without which it does not start.
    pub(super) fn has_faculties(&self) -> Result<(), BackendError> {
        let Some(bundle) = self.bundle.as_ref().filter(|bundle| !bundle.exists()) else { return Ok(()) };
        let gone = format!(
            "the faculties that it mounts at {} are gone; put them back, or make it again with user destroy and user create",
            bundle.display()
        );
        Err(step(format!("start the machine of {}", self.tenant), io::Error::other(gone)))
    }

    pub(super) fn pile_state(&self) -> PileState {
        if self.pile.is_some() { PileState::Unenforced } else { PileState::None }
    }
}

impl Pile {
    /// The folder that the machine finds at `/pile`.
    pub(super) fn folder(&self) -> PathBuf {
        let own = || self.file.parent().unwrap_or(Path::new("/")).to_owned();
        self.view.as_ref().map_or_else(own, |view| view.pile.clone())
    }
}

/// A tenant's label, also one of the original's.
mod label {
    use kit::Tenant;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(tenant: &Tenant, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(tenant.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Tenant, D::Error> {
        Tenant::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}
