//! What a machine is made with, and has for as long as it lives.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::settings::{Egress, Profile, Size, TenantSettings};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    pub(super) memory: Size,
    pub(super) disk: Size,
    pub(super) cpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) faculties: Option<PathBuf>,
    /// What was decided for all then.
    pub(super) common: TenantSettings,
}

impl Made {
    /// A machine is made with what was decided for it, else for all, else with the original's.
    pub(super) fn of(own: &TenantSettings, common: &TenantSettings, bundle: Option<&PathBuf>) -> Self {
        let percent = own.cpu_percent.or(common.cpu_percent);
        Self {
            memory: own.memory.or(common.memory).unwrap_or(MEMORY),
            disk: own.disk.or(common.disk).unwrap_or(DISK),
            cpus: percent.map_or(CPUS, |percent| u32::try_from(percent.div_ceil(100)).unwrap_or(CPUS)),
            faculties: own.faculties.as_ref().or(common.faculties.as_ref()).or(bundle).cloned(),
            common: common.clone(),
        }
    }

    /// What holds for it. Of all else, nothing bounds a machine.
    pub(super) fn in_force(&self) -> TenantSettings {
        TenantSettings {
            memory: Some(self.memory),
            disk: Some(self.disk),
            cpu_percent: Some(u64::from(self.cpus) * 100),
            faculties: self.faculties.clone(),
            egress: Some(Egress::Open),
            shared_pile: Some(false),
            ..TenantSettings::default()
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.in_force().over(&TenantSettings::default())
    }
}

/// Whether a machine that was made with these settings has all that those decide.
pub(super) fn has_all(made: &TenantSettings, wanted: &TenantSettings) -> bool {
    let decides = |settings: &TenantSettings| {
        let TenantSettings { memory, disk, cpu_percent, faculties, .. } = settings;
        (*memory, *disk, *cpu_percent, faculties.clone())
    };
    decides(made) == decides(wanted)
}

/// The original's.
pub(super) const CPUS: u32 = 4;
pub(super) const MEMORY: Size = Size::new(8 << 30);
pub(super) const DISK: Size = Size::new(30 << 30);
