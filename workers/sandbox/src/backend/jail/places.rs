//! Where each thing of a tenant lies on the host.

use kit::Tenant;

use super::names::JailName;
use super::settings::Settings;
use super::text::{Dataset, HostPath};

/// What is the tenant's on the host, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) tenant: Tenant,
    pub(super) jail: JailName,
    pub(super) dataset: Dataset,
    pub(super) pile_root: HostPath,
    /// Where files are finished before they get their place, open to root alone.
    pub(super) staging: HostPath,
    pub(super) pile_folder: HostPath,
    pub(super) pile: HostPath,
    pub(super) key: HostPath,
    pub(super) marker: HostPath,
    pub(super) shared_folder: HostPath,
    pub(super) shared: HostPath,
}

impl Places {
    pub(super) fn of(settings: &Settings, tenant: &Tenant) -> Self {
        Self::called(settings, tenant, JailName::of(&settings.prefix, tenant))
    }

    /// The same for a jail that was found under its name.
    pub(super) fn called(settings: &Settings, tenant: &Tenant, jail: JailName) -> Self {
        let pile_root = settings.pile_root.clone();
        let pile_folder = pile_root.join(jail.as_str());
        let shared_folder = pile_root.join("shared");
        Self {
            tenant: tenant.clone(),
            dataset: jail.dataset(&settings.dataset_parent),
            staging: pile_root.join(".staging"),
            pile: pile_folder.join("self.pile"),
            key: pile_folder.join("self.key"),
            marker: pile_folder.join(".tenant"),
            shared: shared_folder.join("shared.pile"),
            shared_folder,
            pile_folder,
            pile_root,
            jail,
        }
    }

    /// The name that a file has until it is finished. Nobody else uses it: a jail's name is one tenant's.
    pub(super) fn staged(&self, file: &HostPath) -> HostPath {
        let name = file.as_str().rsplit('/').next().unwrap_or_default();
        self.staging.join(&format!("{}.{}", self.jail, name.trim_start_matches('.')))
    }
}

/// A tenant's root folder: as the host's programs are told it, and as the table of mounts spells it.
///
/// Inside a parent jail the table has the path as the physical host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) path: HostPath,
    pub(super) spelled: String,
}

impl Root {
    pub(super) fn inside(&self, guest: &str) -> HostPath {
        self.path.join(guest.trim_start_matches('/'))
    }

    pub(super) fn spelled_inside(&self, guest: &str) -> String {
        format!("{}{guest}", self.spelled)
    }
}

pub(super) const DEV: &str = "/dev";
pub(super) const PILE_FOLDER: &str = "/pile";
pub(super) const PILE: &str = "/pile/self.pile";
pub(super) const KEY: &str = "/pile/self.key";
pub(super) const SHARED_FOLDER: &str = "/shared";
pub(super) const SHARED: &str = "/shared/shared.pile";
pub(super) const PROFILE: &str = "/etc/profile";
pub(super) const RESOLVER: &str = "/etc/resolv.conf";
/// Where a login shell begins.
pub(super) const HOME: &str = "/workspace";
