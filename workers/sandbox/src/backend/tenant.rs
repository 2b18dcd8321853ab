//! A tenant as a backend's caller speaks of it: what it is to get, what is remembered of it, what it takes up.

use std::path::PathBuf;

use super::DiskQuota;
use crate::settings::{Profile, TenantSettings};

/// What the operator chose for a new tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    pub pile: Pile,
    /// What was decided for this tenant; it stays as it was where the sandbox is there already.
    pub settings: TenantSettings,
    /// Whether the operator accepted in words that more disk is promised than there is.
    pub overcommit: bool,
}

impl From<Pile> for Provision {
    fn from(pile: Pile) -> Self {
        Self { pile, settings: TenantSettings::default(), overcommit: false }
    }
}

/// What is remembered of a tenant that has a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub settings: TenantSettings,
    /// Whether nobody but the operator may use it for now.
    pub disabled: bool,
    /// The name by which clients hold it, once it was opened; it stays for the sandbox's life.
    pub session: Option<String>,
    pub pile: PileState,
    /// How the bound of the tenant's disk is held.
    pub disk_quota: DiskQuota,
    /// What the settings lead to on this host.
    pub profile: Profile,
    /// What was decided for all when that counted: a machine has what it was made with.
    pub common: TenantSettings,
    /// What holds for it. What this host has no bound for is absent.
    pub in_force: TenantSettings,
}

/// What a tenant's files take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of home and workspace together.
    pub disk: Share,
    /// Files and folders in home and workspace together.
    pub inodes: Share,
    /// Bytes of the tenant's own pile, which its disk does not count.
    pub pile: u64,
}

/// A part that is used of what may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Absent where it is not counted.
    pub used: Option<u64>,
    /// Absent where nothing bounds it.
    pub bound: Option<u64>,
}

/// A change of what is remembered. It holds from the sandbox's next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A smaller disk than it has is refused; a larger one only where the host can keep the promise, or the operator
    /// accepted in words that it cannot.
    Settings {
        settings: TenantSettings,
        overcommit: bool,
    },
    Disabled(bool),
}

/// Whether the tenant has an append-only file at `/pile/self.pile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pile {
    /// Make it, and fail when it cannot be made append-only.
    Enforced,
    /// Make it even where nothing enforces that it is only appended to: the operator said so in words.
    Unenforced,
    /// Make none.
    None,
    /// [`Pile::Enforced`] where the host can enforce it, else [`Pile::None`].
    IfEnforceable,
}

/// How a tenant's sandbox came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// False when the sandbox was there already.
    pub created: bool,
    /// What became of the pile.
    pub pile: PileState,
}

/// What a host has of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Whether it has a sandbox, if only a half-made one.
    pub sandbox: bool,
    /// Where its pile lies, which outlives the sandbox unless it is deleted.
    pub pile: Option<PathBuf>,
}

/// How the tenant's pile is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PileState {
    Enforced,
    Unenforced,
    None,
}

/// What a tenant finds inside, as `open_session` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The sandbox's own name, the same each time; it tells nothing about the tenant.
    pub session: String,
    pub os: &'static str,
    pub arch: &'static str,
    pub user: String,
    pub home: String,
    pub pile: PileState,
    pub disk_quota: DiskQuota,
    /// What it can reach beyond its own loopback and how, as a phrase; nothing if absent.
    pub egress: Option<String>,
    /// Whether it has a loopback, where it can reach nothing else.
    pub loopback: bool,
}
