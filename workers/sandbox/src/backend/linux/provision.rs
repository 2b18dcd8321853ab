//! Making and destroying a tenant's sandbox.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;
use std::sync::Arc;

use kit::Tenant;

use super::launch::Users;
use super::layout::{Home, Meta, Pile, Stage, step};
use super::slot::{Slot, users};
use super::start::begin;
use super::{Inner, pile, removal, supplies};
use crate::backend::{self, AppendOnly, BackendError, CommandSpec, Exit, Provision, Provisioned, Shell, UidMap};
use crate::settings::TenantSettings;

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
        // Whatever goes wrong now, a pile that was kept from before is somebody's data.
        let new_pile = !home.pile().exists();
        let (this, place) = (Arc::clone(self), home.clone());
        let settings = spec.settings.clone();
        let made = tokio::task::spawn_blocking(move || this.make(&place, wanted, settings)).await;
        let mut meta = made.map_err(|fault| step("make a sandbox")(io::Error::other(fault)))??;
        let tested = match wanted {
            Pile::Enforced => self.attack(tenant, &home, &meta, &slot).await,
            Pile::Unenforced | Pile::None => Ok(()),
        };
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
            backend::Pile::Enforced => Err(BackendError::NotEnforceable(
                "setting the append-only flag needs root and a file system that has it (ext4, xfs, btrfs)".to_owned(),
            )),
        }
    }

    /// Each step leaves alone what is there, so that a making that was cut short is finished by the next. Until the
    /// record says that it is ready, the tenant does not exist.
    fn make(&self, home: &Home, wanted: Pile, settings: TenantSettings) -> Result<Meta, BackendError> {
        let new = folder(home.folder(), 0o700).map_err(step(format!("make {}", home.folder().display())))?;
        let made = self.fill(home, wanted, settings);
        if made.is_err() && new {
            undo(home);
        }
        made
    }

    fn fill(&self, home: &Home, wanted: Pile, settings: TenantSettings) -> Result<Meta, BackendError> {
        let naming = || step(format!("make {}", home.folder().display()));
        supplies::check(&settings.over(&self.config.common), self.ids)?;
        let kept = home.remembered()?;
        let first = match (self.ids, kept.as_ref().and_then(|meta| meta.first_uid)) {
            (UidMap::Single, _) => None,
            // The kept pile belongs to this range.
            (UidMap::Range, Some(first)) => Some(first),
            (UidMap::Range, None) => Some(self.layout.take_range()?),
        };
        let mut meta = Meta::new(first);
        meta.pile = wanted;
        meta.settings = settings;
        let users = users(self.ids, &meta)?;
        for path in [home.home(), home.workspace()] {
            folder(&path, 0o700).map_err(naming())?;
            if let Users::Range(_) = users {
                chown(&path, Some(users.guest()), Some(users.guest())).map_err(naming())?;
            }
        }
        if wanted != Pile::None {
            pile::make(&home.pile(), users, wanted == Pile::Enforced)?;
        }
        home.remember(&meta)?;
        Ok(meta)
    }

    /// Attacks a twin of the pile from inside.
    async fn attack(
        self: &Arc<Self>,
        tenant: &Tenant,
        home: &Home,
        meta: &Meta,
        slot: &Slot,
    ) -> Result<(), BackendError> {
        let twin = home.pile().join(pile::TWIN);
        let users = users(self.ids, meta)?;
        let making = || step(format!("make {}", twin.display()));
        pile::remove(&twin).and_then(|()| pile::file(&twin, users, true)).map_err(making())?;
        let result = self.ask_from_inside(tenant, meta, slot).await;
        pile::remove(&twin).map_err(step(format!("remove {}", twin.display())))?;
        match result? {
            Some(Exit::Code(0)) => Ok(()),
            Some(other) => Err(BackendError::NotEnforceable(format!("the self-test from inside ended with {other:?}"))),
            None => Err(BackendError::NotEnforceable("the self-test from inside did not end".to_owned())),
        }
    }

    /// Runs the self-test in a sandbox that is started for it and ended again.
    async fn ask_from_inside(
        self: &Arc<Self>,
        tenant: &Tenant,
        meta: &Meta,
        slot: &Slot,
    ) -> Result<Option<Exit>, BackendError> {
        let live = self.launch(tenant, slot, meta.clone()).await?;
        let test = CommandSpec { command: pile::SELF_TEST.to_owned(), shell: Shell::Clean, cwd: None, stdin: false };
        let exit = match begin(Arc::clone(&live), test).await {
            Ok(started) => Ok(tokio::time::timeout(live.deadline, started.command.ended()).await.ok()),
            Err(fault) => Err(fault),
        };
        live.end().await?;
        slot.set(None);
        exit
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
        slot.set(None);
        self.remove(&home, delete_pile).await
    }

    async fn remove(&self, home: &Home, delete_pile: bool) -> Result<(), BackendError> {
        let home = home.clone();
        let removed = tokio::task::spawn_blocking(move || remove(&home, delete_pile)).await;
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
    if !keeps_pile {
        pile::destroy(&home.pile()).map_err(removing(&home.pile()))?;
        removal::remove(home.folder()).map_err(removing(home.folder()))?;
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

/// Makes a folder unless it is there, and says whether it did.
fn folder(path: &Path, mode: u32) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(fault) => Err(fault),
    }
}
