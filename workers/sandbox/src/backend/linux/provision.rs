//! Making and destroying a tenant's sandbox.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;
use std::sync::Arc;

use kit::Tenant;

use super::first_process::users;
use super::launch::Users;
use super::layout::{Files, Home, Meta, Pile, Promising, Stage, step};
use super::probe::Ids;
use super::{Inner, disk, pile, removal, supplies};
use crate::backend::{self, AppendOnly, BackendError, DiskQuota, Provision, Provisioned};
use crate::settings::{Limits, Size, TenantSettings};

impl Inner {
    pub(super) async fn provision(
        self: &Arc<Self>,
        tenant: &Tenant,
        spec: &Provision,
    ) -> Result<Provisioned, BackendError> {
        if !tenant.is_portable() {
            let fault = io::Error::new(io::ErrorKind::InvalidInput, "its name cannot be a folder");
            return Err(step(format!("make the sandbox of {tenant}"))(fault));
        }
        let slot = self.slot(tenant);
        let _alone = slot.alone().await;
        let home = self.layout.tenant(tenant)?;
        if let Some(meta) = home.remembered()?.filter(|meta| meta.stage == Stage::Ready) {
            return Ok(Provisioned { created: false, pile: meta.pile_state() });
        }
        let wanted = self.pile(spec.pile)?;
        let shared = spec.settings.over(&self.config.common).shared_pile;
        if let Some(bootstrap) = self.config.bootstrap_pile.as_deref().filter(|_| shared || wanted != Pile::None) {
            pile::check_bootstrap(bootstrap)?;
        }
        // Whatever goes wrong now, a pile that was kept from before is somebody's data.
        let new_pile = !home.pile().exists();
        let (this, place) = (Arc::clone(self), home.clone());
        let wish = spec.clone();
        let made = tokio::task::spawn_blocking(move || this.make(&place, wanted, &wish)).await;
        let mut meta = made.map_err(|fault| step("make a sandbox")(io::Error::other(fault)))??;
        let tested = self.test_from_inside(tenant, &home, &meta, &slot).await;
        meta.stage = Stage::Ready;
        if let Err(fault) = tested.and_then(|()| home.remember(&meta)) {
            // Nobody has used the sandbox yet, so it goes as a whole.
            let _ = self.remove(&home, new_pile).await;
            return Err(fault);
        }
        Ok(Provisioned { created: true, pile: meta.pile_state() })
    }

    fn pile(&self, wanted: backend::Pile) -> Result<Pile, BackendError> {
        let enforceable = self.assurances.append_only == AppendOnly::Enforced;
        match wanted {
            backend::Pile::None => Ok(Pile::None),
            backend::Pile::Unenforced => Ok(if enforceable { Pile::Enforced } else { Pile::Unenforced }),
            backend::Pile::IfEnforceable => Ok(if enforceable { Pile::Enforced } else { Pile::None }),
            backend::Pile::Enforced if enforceable => Ok(Pile::Enforced),
            backend::Pile::Enforced => Err(BackendError::NotEnforceable(NO_FLAG.to_owned())),
        }
    }

    /// Each step leaves alone what is there, so that a making that was cut short is finished by the next. Until the
    /// record says that it is ready, the tenant does not exist.
    fn make(&self, home: &Home, wanted: Pile, spec: &Provision) -> Result<Meta, BackendError> {
        let new = folder(home.folder(), 0o700).map_err(step(format!("make {}", home.folder().display())))?;
        let kept = home.remembered()?;
        let made = home.hold().and_then(|_alone| self.fill(home, wanted, spec));
        if made.is_err() && new {
            undo(home);
        } else if made.is_err()
            && let Some(kept) = kept.filter(|kept| kept.stage == Stage::Destroyed)
        {
            undo_to(home, &kept);
        }
        made
    }

    fn fill(&self, home: &Home, wanted: Pile, spec: &Provision) -> Result<Meta, BackendError> {
        let naming = || step(format!("make {}", home.folder().display()));
        supplies::check(&spec.settings.over(&self.config.common), self.ids)?;
        let kept = home.remembered()?;
        let mut meta = Meta::new(kept.as_ref().and_then(|meta| meta.first_uid));
        meta.pile = wanted;
        meta.settings = spec.settings.clone();
        meta.files = self.files(home);
        let promising = self.promise(home, &mut meta, kept.as_ref(), spec.overcommit)?;
        meta.first_uid = match (self.ids, meta.first_uid) {
            (Ids::Single, _) => None,
            // The kept pile belongs to this range.
            (Ids::Range, Some(first)) => Some(first),
            (Ids::Range, None) => Some(self.layout.take_range()?),
        };
        home.remember(&meta)?;
        drop(promising);
        let users = users(self.ids, &meta)?;
        match meta.files {
            Files::Folder => {
                for path in [home.home(), home.workspace()] {
                    folder(&path, 0o700).map_err(naming())?;
                    if let Users::Range(_) = users {
                        chown(&path, Some(users.guest()), Some(users.guest())).map_err(naming())?;
                    }
                }
            }
            Files::Image => {
                let (disk, inodes) = (meta.settings.disk.map_or(0, Size::bytes), meta.settings.inodes.unwrap_or(0));
                if !home.image().exists() {
                    disk::format(&home.image(), disk, inodes)
                        .map_err(step(format!("make the disk {}", home.image().display())))?;
                }
            }
        }
        if wanted != Pile::None {
            pile::make(&home.pile(), users, wanted == Pile::Enforced, self.config.bootstrap_pile.as_deref())?;
        }
        self.share(&meta)?;
        home.remember(&meta)?;
        Ok(meta)
    }

    /// How the files of a new tenant are to be kept: as they are, if there are some.
    fn files(&self, home: &Home) -> Files {
        if home.image().exists() {
            return Files::Image;
        }
        let hard = self.assurances.disk_quota == DiskQuota::Hard;
        if hard && !home.home().exists() { Files::Image } else { Files::Folder }
    }

    /// Decides what nobody decided of the tenant's disk, if the promise can be kept. Until the result is dropped, nobody
    /// else promises the same.
    fn promise(
        &self,
        home: &Home,
        meta: &mut Meta,
        kept: Option<&Meta>,
        overcommit: bool,
    ) -> Result<Promising, BackendError> {
        let promising = self.layout.promise()?;
        // Of a making that was cut short: its promise counts already.
        let before = kept.filter(|kept| kept.stage == Stage::Making && kept.files == Files::Image);
        let before = before.and_then(|kept| kept.settings.disk).map(Size::bytes);
        let common = &self.config.common;
        let decided = meta.settings.disk.or(common.disk).map(Size::bytes);
        let bytes = decided.or(before).unwrap_or_else(|| promising.usual());
        let inodes = match (meta.settings.inodes.or(common.inodes), meta.files) {
            (Some(decided), _) => decided,
            (None, Files::Folder) => Limits::default().inodes,
            (None, Files::Image) => Limits::default().inodes.min(bytes / BYTES_A_FILE),
        };
        if meta.files == Files::Image {
            sound(bytes, inodes)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))
                .map_err(step(format!("make the disk {}", home.image().display())))?;
        }
        if !overcommit {
            promising.keep(bytes.saturating_sub(before.unwrap_or(0)))?;
        }
        meta.settings.disk = Some(Size::new(bytes));
        meta.settings.inodes = Some(inodes);
        Ok(promising)
    }

    /// Whether the pile of all can be made so that it can only be appended to.
    pub(super) fn shared_is_enforced(&self) -> bool {
        self.assurances.append_only == AppendOnly::Enforced
    }

    /// Makes the pile of all if the tenant is to have it. Where nothing enforces that it is only appended to, only one
    /// whose own pile is accepted to be so as well finds it.
    pub(super) fn share(&self, meta: &Meta) -> Result<bool, BackendError> {
        if !meta.settings.over(&self.config.common).shared_pile {
            return Ok(false);
        }
        let enforced = self.shared_is_enforced();
        if !enforced && meta.pile != Pile::Unenforced {
            return Err(BackendError::NotEnforceable(NO_FLAG.to_owned()));
        }
        pile::make_shared(&self.layout.shared(), enforced, self.config.bootstrap_pile.as_deref())?;
        Ok(true)
    }

    pub(super) async fn destroy(self: &Arc<Self>, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        let home = self.layout.tenant(tenant)?;
        if home.remembered()?.is_none_or(|meta| meta.stage == Stage::Destroyed && !delete_pile) {
            return Err(BackendError::NotProvisioned(tenant.clone()));
        }
        let slot = self.slot(tenant);
        let _alone = slot.alone().await;
        if let Some(live) = slot.live() {
            live.end().await?;
        }
        slot.settle().await?;
        self.remove(&home, delete_pile).await
    }

    async fn remove(&self, home: &Home, delete_pile: bool) -> Result<(), BackendError> {
        let home = home.clone();
        let removed = tokio::task::spawn_blocking(move || remove(&home, delete_pile)).await;
        // What the record needed of the ballast can be put back now.
        self.layout.ballast().keep();
        removed.map_err(|fault| step("remove a sandbox")(io::Error::other(fault)))?
    }
}

/// Forgets the sandbox first, then removes its files: cut short, it is finished by the next call or the next making.
fn remove(home: &Home, delete_pile: bool) -> Result<(), BackendError> {
    let removing = |path: &Path| step(format!("remove {}", path.display()));
    let lock = home.hold()?;
    let keeps_pile = !delete_pile && home.pile().exists();
    if let Some(mut meta) = home.remembered()? {
        meta.stage = Stage::Destroyed;
        home.remember(&meta)?;
    }
    for path in [home.home(), home.workspace()] {
        removal::remove(&path).map_err(removing(&path))?;
    }
    remove_images(home).map_err(removing(&home.image()))?;
    if !keeps_pile {
        pile::destroy(&home.pile()).map_err(removing(&home.pile()))?;
        // Out of the way at one instant, with the lock in it: another process that opens or makes the tenant meanwhile
        // finds it whole or not at all, and puts nothing into a folder that is going.
        let aside = home.aside();
        match fs::rename(home.folder(), &aside) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(removing(home.folder())(fault)),
            Ok(()) | Err(_) => removal::remove(&aside).map_err(removing(&aside))?,
        }
    }
    drop(lock);
    Ok(())
}

/// Takes back a making that failed in a folder of its own, in which nothing ever ran. It asks for no lock and writes no
/// record, since the fault may be that there is no space for either.
fn undo(home: &Home) {
    // Another process may have finished meanwhile what failed here.
    if !matches!(home.remembered(), Ok(None | Some(Meta { stage: Stage::Making, .. }))) {
        return;
    }
    let undone = pile::destroy(&home.pile()).and_then(|()| removal::remove(home.folder()));
    if let Err(fault) = undone {
        tracing::warn!(folder = %home.folder().display(), %fault, "what a failed making left cannot be removed");
    }
}

/// Takes back a making that failed in a folder with a kept pile.
fn undo_to(home: &Home, kept: &Meta) {
    let undone = remove_images(home).map_err(step(format!("remove {}", home.image().display())));
    if let Err(fault) = undone.and_then(|()| home.remember(kept)) {
        tracing::warn!(folder = %home.folder().display(), %fault, "what a failed making left cannot be removed");
    }
}

fn remove_images(home: &Home) -> io::Result<()> {
    for path in [home.image(), home.image().with_added_extension("new")] {
        match fs::remove_file(path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether a disk of this size can hold this many files, and anything else.
fn sound(bytes: u64, inodes: u64) -> Result<(), String> {
    let (size, least) = (Size::new(bytes), TenantSettings::LEAST_DISK);
    if size < least {
        return Err(format!("{size} are too few for a disk; it needs {least}"));
    }
    if inodes.saturating_mul(INODE) > bytes / 2 {
        return Err(format!("the records of {inodes} files alone would fill half of {}", Size::new(bytes)));
    }
    Ok(())
}

/// Makes a folder unless it is there, and says whether it did.
fn folder(path: &Path, mode: u32) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Why a file cannot be made append-only.
const NO_FLAG: &str = "setting the append-only flag needs root and a file system that has it (ext4, xfs, btrfs)";

/// What the record of a file takes.
const INODE: u64 = 256;

/// Source code and packages have files of about this size; the records take a thirty-second part of the disk then.
const BYTES_A_FILE: u64 = 8 << 10;
