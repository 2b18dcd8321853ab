//! Where a tenant's files lie on the host, and which users of the host are a tenant's.
//!
//! ```text
//! tenants/NAME/meta.json   what was decided when it was made
//!              lock        held by the process in which the tenant lives
//!              disk.img    holds home/ and workspace/, see `disk`; else they are folders beside it
//!              pile/self.pile pile/self.key
//! shared/shared.pile       of all who are to have it
//! ballast                  given up where the disk is full
//! uids.json                the next range of user ids, see `ranges`
//! ```

mod hold;
mod promises;
mod ranges;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kit::Tenant;
use kit::ballast::{Ballast, is_full};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::removal;
use crate::backend::{BackendError, Found, PileState};
use crate::random;
use crate::settings::TenantSettings;

pub(super) use self::hold::Hold;
pub(super) use self::promises::Promising;
pub(super) use self::ranges::RANGE;
pub(crate) use self::ranges::set_aside;

/// The worker's folder.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    state: PathBuf,
    ballast: Ballast,
}

/// What is remembered of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    version: u32,
    /// First user id of the tenant's range on the host; absent where one id is all there is.
    pub(super) first_uid: Option<u32>,
    pub(super) pile: Pile,
    pub(super) stage: Stage,
    /// What was decided for this tenant.
    #[serde(default)]
    pub(super) settings: TenantSettings,
    /// Whether nobody but the operator may use it for now.
    #[serde(default)]
    pub(super) disabled: bool,
    /// The name by which clients hold it; absent until it is opened first.
    #[serde(default)]
    pub(super) session: Option<String>,
    /// How home and workspace are kept.
    #[serde(default)]
    pub(super) files: Files,
}

/// How a tenant's home and workspace are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Files {
    /// In plain folders, among everything else on the host's file system.
    #[default]
    Folder,
    /// On a disk of their own.
    Image,
}

/// Whether there is a sandbox to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// It is being made, or its making was cut short.
    Making,
    Ready,
    /// Only its pile is kept.
    Destroyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Pile {
    Enforced,
    Unenforced,
    None,
}

impl Meta {
    pub(super) fn new(first_uid: Option<u32>) -> Self {
        let (pile, stage, settings) = (Pile::None, Stage::Making, TenantSettings::default());
        let (session, files) = (None, Files::Folder);
        Self { version: VERSION, first_uid, pile, stage, settings, disabled: false, session, files }
    }

    pub(super) fn pile_state(&self) -> PileState {
        match self.pile {
            Pile::Enforced => PileState::Enforced,
            Pile::Unenforced => PileState::Unenforced,
            Pile::None => PileState::None,
        }
    }
}

/// Whether a tenant has a sandbox below a worker's folder; makes nothing.
pub(crate) fn is_known(state: &Path, tenant: &Tenant) -> bool {
    let layout = Layout::at(state);
    layout.tenant(tenant).and_then(|home| home.meta()).is_ok()
}

impl Layout {
    fn at(state: &Path) -> Self {
        Self { state: state.to_owned(), ballast: Ballast::of(state) }
    }

    /// What is given up where the disk is full.
    pub(super) fn ballast(&self) -> &Ballast {
        &self.ballast
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn open(state: &Path) -> Result<Self, BackendError> {
        let layout = Self::at(state);
        let tenants = layout.state.join("tenants");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&tenants)
            .map_err(step(format!("make {}", tenants.display())))?;
        Ok(layout)
    }

    pub(super) fn tenant(&self, tenant: &Tenant) -> Result<Home, BackendError> {
        if !tenant.is_portable() {
            return Err(BackendError::NotProvisioned(tenant.clone()));
        }
        let folder = self.state.join("tenants").join(tenant.as_str());
        Ok(Home { tenant: tenant.clone(), folder, ballast: self.ballast.clone() })
    }

    /// What there is of a tenant. A name that none can have has nothing.
    pub(super) fn look(&self, tenant: &Tenant) -> Result<Found, BackendError> {
        let Ok(home) = self.tenant(tenant) else { return Ok(Found::default()) };
        let Some(meta) = home.remembered()? else { return Ok(Found::default()) };
        let pile = Some(home.pile()).filter(|pile| pile.exists());
        Ok(Found { sandbox: meta.stage != Stage::Destroyed, pile })
    }

    /// Where the pile of all lies.
    pub(super) fn shared(&self) -> PathBuf {
        self.state.join("shared")
    }

    /// Every tenant that has a sandbox, sorted.
    pub(super) fn tenants(&self) -> Result<Vec<Tenant>, BackendError> {
        let folder = self.state.join("tenants");
        let entries = fs::read_dir(&folder).map_err(step(format!("read {}", folder.display())))?;
        let mut tenants: Vec<Tenant> = entries
            .flatten()
            .filter_map(|entry| Tenant::parse_new(entry.file_name().to_str()?).ok())
            .filter(|tenant| self.tenant(tenant).and_then(|home| home.meta()).is_ok())
            .collect();
        tenants.sort();
        Ok(tenants)
    }
}

impl Layout {
    /// Removes what a removal that was cut short had put aside.
    pub(super) fn sweep(&self) {
        let entries = fs::read_dir(self.state.join("tenants")).into_iter().flatten().flatten();
        let aside = entries.filter(|entry| entry.file_name().as_bytes().starts_with(ASIDE.as_bytes()));
        for folder in aside.map(|entry| entry.path()) {
            // Who removes it now still has its lock.
            let free = match File::open(folder.join("lock")) {
                Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
                Err(fault) => fault.kind() == io::ErrorKind::NotFound,
            };
            if free && let Err(fault) = removal::remove(&folder) {
                tracing::warn!(folder = %folder.display(), %fault, "what a removal left cannot be removed");
            }
        }
    }
}

/// One tenant's folder.
#[derive(Clone, Debug)]
pub(super) struct Home {
    tenant: Tenant,
    folder: PathBuf,
    ballast: Ballast,
}

impl Home {
    /// Where the folder goes before it is removed; no tenant is called like that.
    pub(super) fn aside(&self) -> PathBuf {
        self.folder.with_file_name(format!("{ASIDE}{:032x}", random::bits()))
    }

    pub(super) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    pub(super) fn image(&self) -> PathBuf {
        self.folder.join("disk.img")
    }

    pub(super) fn pile(&self) -> PathBuf {
        self.folder.join("pile")
    }

    /// Bytes of the tenant's own pile.
    pub(super) fn pile_bytes(&self) -> u64 {
        self.pile().join("self.pile").metadata().map_or(0, |found| found.len())
    }

    /// What is remembered, of a tenant that has a sandbox now.
    pub(super) fn meta(&self) -> Result<Meta, BackendError> {
        self.remembered()?
            .filter(|meta| meta.stage == Stage::Ready)
            .ok_or_else(|| BackendError::NotProvisioned(self.tenant.clone()))
    }

    /// What is remembered, also of a tenant that was destroyed.
    pub(super) fn remembered(&self) -> Result<Option<Meta>, BackendError> {
        let path = self.folder.join("meta.json");
        match read_json::<Meta>(&path) {
            Ok(meta) if meta.version <= IMAGE_VERSION => Ok(Some(meta)),
            Ok(_) => {
                Err(step(format!("read {}", path.display()))(io::Error::other("it was written by a newer version")))
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(step(format!("read {}", path.display()))(fault)),
        }
    }

    pub(super) fn remember(&self, meta: &Meta) -> Result<(), BackendError> {
        let path = self.folder.join("meta.json");
        let version = match meta.files {
            Files::Folder => VERSION,
            Files::Image => IMAGE_VERSION,
        };
        let meta = Meta { version, ..meta.clone() };
        // Also on a full disk: removing a sandbox begins with its record.
        let written = self.ballast.write(|| write_json(&path, &meta), is_full);
        written.map_err(step(format!("write {}", path.display())))
    }
}

/// An error that says what was being done.
pub(super) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> BackendError {
    let step = step.into();
    move |source| BackendError::Step { step, source }
}

fn open_lock(path: &Path) -> io::Result<File> {
    kit::regular::look(path)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    kit::regular::look(path)?;
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    kit::durable::replace(path, 0o600, &serde_json::to_vec(value)?)
}

/// What is being removed begins with it.
const ASIDE: &str = ".removed-";

const VERSION: u32 = 1;

/// Of a tenant whose files lie on a disk of their own, where a program that knows none would find empty folders.
const IMAGE_VERSION: u32 = 2;
