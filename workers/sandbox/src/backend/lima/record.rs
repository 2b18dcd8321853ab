//! What is remembered of tenants and their machines, and the files that machines find.
//!
//! ```text
//! STATE/lima/NAME.json          a tenant's record: whose machine it is
//! STATE/lima/piles/NAME/        a pile of our own making, which outlives the machine
//! ROOT/NAME/lima.yaml           what the machine was made from
//! ROOT/NAME/faculty-files/      views of a pile that lies elsewhere: hard links, so that nothing beside it is seen
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::Tenant;

use super::disk::Disk;
use super::kept::{Kept, Pile, View};
use super::limactl::Listed;
use super::mark::Mark;
use super::name::Name;
use super::{Settings, step};
use crate::backend::BackendError;
use crate::bundle::Cache;

/// The folders of all records and files.
pub(super) struct Records {
    folder: PathBuf,
    root: PathBuf,
    prefix: String,
    disk: Arc<dyn Disk>,
}

impl Records {
    /// Makes the folders where they are not there. Those of somebody else are refused.
    pub(super) fn open(state: &Path, settings: &Settings, disk: Arc<dyn Disk>) -> Result<Self, BackendError> {
        let (folder, root) = (state.join("lima"), settings.state_root.clone());
        for (why, path) in [("have a folder for records", &folder), ("have a folder for machines", &root)] {
            disk.own_folder(why, path).map_err(|fault| step(format!("use the folder {}", path.display()), fault))?;
        }
        Ok(Self { folder, root, prefix: settings.instance_prefix.clone(), disk })
    }

    /// Those that can be read: one that cannot keeps nobody else's machine from its tenant.
    pub(super) fn all(&self) -> Result<Vec<Kept>, BackendError> {
        let mut all: Vec<_> = self.each()?.into_iter().filter_map(Result::ok).collect();
        all.sort_by(|one, other| one.tenant.cmp(&other.tenant));
        Ok(all)
    }

    /// What is wrong with those that cannot.
    pub(super) fn torn(&self) -> Result<Vec<BackendError>, BackendError> {
        Ok(self.each()?.into_iter().filter_map(Result::err).collect())
    }

    fn each(&self) -> Result<Vec<Result<Kept, BackendError>>, BackendError> {
        let listed = self.disk.list(&self.folder).map_err(|fault| step("list the machines' records", fault))?;
        let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let read = |path: PathBuf| match self.read(&path) {
            // Under another prefix there are other machines.
            Ok(kept) if path != self.path(&kept.tenant) => None,
            read => Some(read),
        };
        Ok(listed.into_iter().filter(is_record).filter_map(read).collect())
    }

    pub(super) fn find(&self, tenant: &Tenant) -> Result<Option<Kept>, BackendError> {
        let path = self.path(tenant);
        if !self.disk.exists(&path).map_err(|fault| step(format!("look for the record of {tenant}"), fault))? {
            return Ok(None);
        }
        let kept = self.read(&path)?;
        if kept.tenant != *tenant {
            let fault = io::Error::other(format!("it is that of {}", kept.tenant));
            return Err(step(format!("read the record of {tenant}"), fault));
        }
        Ok(Some(kept))
    }

    pub(super) fn keep(&self, kept: &Kept) -> Result<(), BackendError> {
        let fault = |fault| step(format!("keep the record of {}", kept.tenant), fault);
        if let Some(bundle) = &kept.bundle {
            Cache::mark(bundle, self.name(&kept.tenant).as_str()).map_err(|wrong| fault(io::Error::other(wrong)))?;
        }
        let text = serde_json::to_vec_pretty(kept).map_err(|wrong| fault(io::Error::other(wrong)))?;
        self.disk.replace("remember whose it is", &self.path(&kept.tenant), 0o600, &text).map_err(fault)
    }

    /// Removes the record, last, and what the machine was made from. A pile stays.
    pub(super) fn forget(&self, tenant: &Tenant) -> Result<(), BackendError> {
        let fault = |fault| step(format!("forget the machine of {tenant}"), fault);
        let folder = self.root.join(self.name(tenant).as_str());
        self.disk.remove_folder("remove what the machine was made from", &folder).map_err(fault)?;
        if let Some(bundle) = self.find(tenant)?.and_then(|kept| kept.bundle) {
            Cache::unmark(&bundle, self.name(tenant).as_str()).map_err(|wrong| fault(io::Error::other(wrong)))?;
        }
        self.disk.remove_file("forget whose it was", &self.path(tenant)).map_err(fault)
    }

    /// What a machine that is made now is to carry.
    pub(super) fn mark(&self, name: &Name) -> Mark {
        Mark::of(&self.folder, name)
    }

    /// Finds that a machine which has a tenant's name is the one that was made for it.
    pub(super) fn recognise(&self, tenant: &Tenant, listed: &Listed) -> Result<(), BackendError> {
        let what = || format!("recognise the machine {}", self.name(tenant).as_str());
        // Whoever has no record is asked for none of its own.
        let mark = self.find(tenant)?.and_then(|kept| kept.mark);
        let is_ours = mark.map_or(Ok(true), |mark| mark.is_on(&*self.disk, &listed.folder));
        if is_ours.map_err(|fault| step(what(), fault))? {
            return Ok(());
        }
        Err(step(what(), io::Error::other(STRANGER)))
    }

    /// Finds that a file of the operator's is there.
    pub(super) fn regular(&self, file: &Path) -> Result<(), BackendError> {
        self.disk.regular(file).map(drop).map_err(|fault| step(format!("use the template {}", file.display()), fault))
    }

    /// Writes what a machine is made from.
    pub(super) fn template(&self, name: &Name, text: &str) -> Result<PathBuf, BackendError> {
        let folder = self.root.join(name.as_str());
        let path = folder.join("lima.yaml");
        let fault = |fault| step(format!("write {}", path.display()), fault);
        self.disk.own_folder("have a folder for the machine", &folder).map_err(fault)?;
        self.disk.replace("write what the machine is made from", &path, 0o600, text.as_bytes()).map_err(fault)?;
        Ok(path)
    }

    /// A pile of our own making, not made yet.
    pub(super) fn own_pile(&self, name: &Name) -> Pile {
        Pile { file: self.pile_folder(name).join("self.pile"), key: None, view: None }
    }

    /// The folder of a pile of our own, where there is one.
    pub(super) fn kept_pile(&self, name: &Name) -> Option<PathBuf> {
        Some(self.pile_folder(name)).filter(|folder| self.disk.exists(folder).unwrap_or(true))
    }

    /// Removes it, and says whether there was one. One that lies elsewhere is never removed.
    pub(super) fn remove_own_pile(&self, name: &Name) -> Result<bool, BackendError> {
        let removed = self.disk.remove_folder("remove the pile", &self.pile_folder(name));
        removed.map_err(|fault| step("remove the pile", fault))
    }

    /// Makes what the machine mounts, where it is not there: also after a temporary folder was emptied.
    pub(super) fn settle_pile(&self, kept: &Kept, bootstrap: Option<&Path>) -> Result<Option<Pile>, BackendError> {
        let Some(mut pile) = kept.pile.clone() else { return Ok(None) };
        let name = self.name(&kept.tenant);
        let fault = |fault| step(format!("make the pile of {}", kept.tenant), fault);
        if pile.file.starts_with(self.pile_folder(&name)) {
            self.disk.own_folder("have a folder for piles", &self.folder.join("piles")).map_err(fault)?;
            self.disk.own_folder("have a folder for the pile", &self.pile_folder(&name)).map_err(fault)?;
            if !self.disk.exists(&pile.file).map_err(fault)? {
                let content = bootstrap.map_or(Ok(Vec::new()), |file| self.disk.read(file)).map_err(fault)?;
                self.disk.replace("begin the pile", &pile.file, 0o644, &content).map_err(fault)?;
            }
            return Ok(Some(pile));
        }
        let folder = self.root.join(name.as_str());
        let files = folder.join("faculty-files");
        let view = View { pile: files.join("pile"), key: pile.key.as_ref().map(|_| files.join("key")) };
        for path in [Some(&folder), Some(&files), Some(&view.pile), view.key.as_ref()].into_iter().flatten() {
            self.disk.own_folder("have a folder with nothing else in it", path).map_err(fault)?;
        }
        let shown = self.disk.link("show the pile there", &pile.file, &view.pile.join("self.pile"));
        shown.map_err(fault)?;
        if let (Some(key), Some(place)) = (&pile.key, &view.key) {
            self.disk.link("show the key there", key, &place.join("self.key")).map_err(fault)?;
        }
        pile.view = Some(view);
        Ok(Some(pile))
    }

    /// One of the operator's, `.../self.pile`, with the `self.key` beside it where there is one.
    pub(super) fn pile_beside(&self, file: &Path) -> Result<Pile, BackendError> {
        let fault = |fault| step(format!("use the pile {}", file.display()), fault);
        if !file.is_absolute() || file.file_name().is_none_or(|name| name != "self.pile") {
            return Err(fault(io::Error::other("it has to be an absolute path that ends with self.pile")));
        }
        let key = file.with_file_name("self.key");
        let key =
            if self.disk.exists(&key).map_err(fault)? { Some(self.disk.regular(&key).map_err(fault)?) } else { None };
        Ok(Pile { file: self.disk.regular(file).map_err(fault)?, key, view: None })
    }

    fn read(&self, path: &Path) -> Result<Kept, BackendError> {
        let fault = |fault| step(format!("read {}", path.display()), fault);
        let text = self.disk.read(path).map_err(fault)?;
        serde_json::from_slice(&text).map_err(|wrong| {
            let name = path.file_stem().unwrap_or_default().display();
            let remedy = format!("put it back, or remove it and the machine: limactl delete --force {name}");
            fault(io::Error::other(format!("it is no record of a machine ({wrong}); {remedy}")))
        })
    }

    fn pile_folder(&self, name: &Name) -> PathBuf {
        self.folder.join("piles").join(name.as_str())
    }

    fn path(&self, tenant: &Tenant) -> PathBuf {
        self.folder.join(format!("{}.json", self.name(tenant).as_str()))
    }

    fn name(&self, tenant: &Tenant) -> Name {
        Name::of(&self.prefix, tenant)
    }
}

pub(super) const STRANGER: &str = "there is one of this name that this service has not made, so it is neither used nor \
                                   removed; see with limactl list whose it is, and remove it with limactl delete";
