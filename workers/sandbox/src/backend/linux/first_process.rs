//! Starting a tenant's first process with everything that is the tenant's.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use kit::Tenant;

use super::cgroup::TenantCgroup;
use super::disk::{Disk, HOME_PART, WORKSPACE_PART};
use super::egress::Gate;
use super::kept::Kept;
use super::launch::{Given, Launched, Users, launch};
use super::layout::{Files, Home, Meta, Pile, Stage, step};
use super::probe::Ids;
use super::quota::Quota;
use super::wire::{HOME, PILE_FOLDER, SHARED_FOLDER, WORKSPACE};
use super::{Inner, supplies};
use crate::backend::BackendError;
use crate::settings::{Egress, Size};

/// A tenant whose first process runs.
pub(super) struct Running {
    pub(super) launched: Launched,
    pub(super) cgroup: TenantCgroup,
    pub(super) kept: Kept,
    /// What it was started with.
    pub(super) egress: Egress,
    pub(super) proxy: Option<Arc<Gate>>,
    pub(super) quota: Option<Quota>,
}

impl Inner {
    /// Starts the first process of a tenant at this stage. Blocks.
    pub(super) fn start_first_process(&self, tenant: &Tenant, stage: Stage) -> Result<Running, BackendError> {
        let home = self.layout.tenant(tenant)?;
        let hold = home.hold()?;
        // Read only now, when nobody else may change it.
        let meta = home.remembered()?.filter(|meta| meta.stage == stage);
        let meta = meta.ok_or_else(|| BackendError::NotProvisioned(tenant.clone()))?;
        let users = users(self.ids, &meta)?;
        let owner = match users {
            Users::Range(first) => Some(first),
            Users::Single => None,
        };
        let profile = meta.settings.over(&self.config.common);
        supplies::check(&profile, self.ids)?;
        let proxy = Gate::of(tenant.clone(), &profile.egress, Arc::clone(&self.outside))
            .map_err(step(format!("open the way out of {tenant}")))?;
        let disk = self.mount(&home, &meta, users).map_err(step(format!("mount the disk of {tenant}")))?;
        let whole;
        let mut given = Vec::new();
        let (files, workspace) = (home.home(), home.workspace());
        match &disk {
            None => {
                whole = None;
                given.extend([(HOME, Given::Folder(&files)), (WORKSPACE, Given::Folder(&workspace))]);
            }
            Some(disk) => {
                given.extend(self.parts(disk).map_err(step(format!("take the folders of {tenant} from its disk")))?);
                let in_parts = given.iter().any(|(_, given)| matches!(given, Given::Part(_)));
                whole = in_parts.then(|| disk.whole().as_fd());
            }
        }
        let (pile, shared) = (home.pile(), self.layout.shared());
        if meta.pile != Pile::None {
            given.push((PILE_FOLDER, Given::Folder(&pile)));
        }
        if self.share(&meta)? {
            given.push((SHARED_FOLDER, Given::Folder(&shared)));
        }
        let setup = self.setup(tenant.as_str(), meta.pile != Pile::None, &profile);
        let cgroup = self
            .cgroups
            .make(tenant, &profile.limits, self.config.kill_deadline, owner)
            .map_err(step(format!("make the cgroups of {tenant}")))?;
        match launch(&self.program, users, Some(&cgroup), setup, given, whole) {
            Ok(launched) => {
                let quota = disk.is_none().then(|| Quota::new(&home, &profile.limits));
                let kept = Kept { disk, hold };
                Ok(Running { launched, cgroup, kept, egress: profile.egress, proxy, quota })
            }
            Err(fault) => {
                let _ = cgroup.remove(self.config.kill_deadline);
                Err(fault)
            }
        }
    }

    fn mount(&self, home: &Home, meta: &Meta, users: Users) -> io::Result<Option<Disk>> {
        match meta.files {
            Files::Folder => Ok(None),
            Files::Image => {
                let disk = Disk::mount(&home.image(), meta.settings.disk.map_or(0, Size::bytes), self.nodes())?;
                disk.furnish(users.guest())?;
                Ok(Some(disk))
            }
        }
    }

    /// The folders on a disk; as parts of the whole where this kernel cannot take them alone.
    fn parts(&self, disk: &Disk) -> io::Result<Vec<(&'static str, Given<'static>)>> {
        let mut parts = Vec::new();
        for (target, name) in [(HOME, HOME_PART), (WORKSPACE, WORKSPACE_PART)] {
            #[cfg(feature = "test-door")]
            if self.door.whole_disks {
                parts.push((target, Given::Part(name)));
                continue;
            }
            parts.push((target, disk.part(name)?.map_or(Given::Part(name), Given::Mount)));
        }
        Ok(parts)
    }
}

/// Which users of the host a tenant consists of, if this service can run it.
pub(super) fn users(ids: Ids, meta: &Meta) -> Result<Users, BackendError> {
    match (ids, meta.first_uid) {
        (Ids::Range, Some(first)) => Ok(Users::Range(first)),
        (Ids::Single, None) => Ok(Users::Single),
        (Ids::Range, None) => Err(step("use a sandbox")(io::Error::other(
            "it was made by an ordinary user's service; run the service as that user",
        ))),
        (Ids::Single, Some(_)) => {
            Err(step("use a sandbox")(io::Error::other("it was made by root's service; run the service as root")))
        }
    }
}
