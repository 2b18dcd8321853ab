//! What was decided for a tenant, as settings again.

use super::{Limits, Profile, Size, TenantSettings};

impl From<&Profile> for TenantSettings {
    fn from(profile: &Profile) -> Self {
        let Profile { limits, egress, system, faculties, shared_pile } = profile;
        let Limits { memory, processes, cpu_percent, open_files, file_size, disk, inodes } = *limits;
        Self {
            memory: Some(Size::new(memory)),
            processes: Some(processes),
            cpu_percent,
            open_files: Some(open_files),
            file_size: Some(Size::new(file_size)),
            disk: disk.map(Size::new),
            inodes: Some(inodes),
            egress: Some(egress.clone()),
            system: system.clone(),
            faculties: faculties.clone(),
            shared_pile: Some(*shared_pile),
        }
    }
}
