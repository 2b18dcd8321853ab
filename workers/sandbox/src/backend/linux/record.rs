//! What is remembered of a tenant: told, counted and changed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::layout::{Files, Home, Meta, step};
use super::scan::Scan;
use super::{Inner, disk};
use crate::backend::{BackendError, Change, DiskQuota, Record, Share, Usage};
use crate::random;
use crate::settings::{Size, TenantSettings};

impl Inner {
    pub(super) fn record(&self, meta: &Meta) -> Record {
        let profile = meta.settings.over(&self.config.common);
        Record {
            settings: meta.settings.clone(),
            disabled: meta.disabled,
            session: meta.session.clone(),
            pile: meta.pile_state(),
            disk_quota: disk_quota(meta, &self.config.common),
            in_force: TenantSettings::from(&profile),
            common: self.config.common.clone(),
            profile,
        }
    }

    /// What a tenant's files take up. Blocks.
    pub(super) fn usage(&self, tenant: &Tenant) -> Result<Usage, BackendError> {
        let home = self.layout.tenant(tenant)?;
        let meta = home.meta()?;
        let counting = || step(format!("count the files of {tenant}"));
        let usage = match meta.files {
            Files::Folder => self.counted(&home, &meta).map_err(counting())?,
            Files::Image => {
                let live = self.known(tenant)?.live().and_then(|live| live.usage());
                live.unwrap_or_else(|| disk::resting(&home.image())).map_err(counting())?
            }
        };
        Ok(Usage { pile: home.pile_bytes(), ..usage })
    }

    fn counted(&self, home: &Home, meta: &Meta) -> io::Result<Usage> {
        let limits = meta.settings.over(&self.config.common).limits;
        let mut scan = Scan::new([home.home(), home.workspace()])?;
        while !scan.step(kit::clock::now() + COUNTING)? {}
        Ok(Usage {
            disk: Share { used: Some(scan.total().bytes), bound: limits.disk },
            inodes: Share { used: Some(scan.total().inodes), bound: Some(limits.inodes) },
            pile: 0,
        })
    }

    /// The record of a tenant that has a name, which is given once and for good.
    pub(super) async fn named(self: &Arc<Self>, tenant: &Tenant) -> Result<Meta, BackendError> {
        let home = self.layout.tenant(tenant)?;
        let meta = home.meta()?;
        if meta.session.is_some() {
            return Ok(meta);
        }
        let slot = self.known(tenant)?;
        self.to_the_end(async move {
            let _alone = slot.alone().await;
            let written = tokio::task::spawn_blocking(move || {
                let mut meta = home.meta()?;
                meta.session.get_or_insert_with(|| format!("s_{:032x}", random::bits()));
                home.remember(&meta)?;
                Ok(meta)
            });
            written.await.map_err(|fault| step("name a sandbox")(io::Error::other(fault)))?
        })
        .await
    }

    pub(super) async fn change(self: &Arc<Self>, tenant: &Tenant, change: Change) -> Result<Record, BackendError> {
        let slot = self.known(tenant)?;
        let _alone = slot.alone().await;
        let (this, tenant) = (Arc::clone(self), tenant.clone());
        let changed = tokio::task::spawn_blocking(move || {
            let home = this.layout.tenant(&tenant)?;
            let mut meta = home.meta()?;
            // A promise is held until the new record is written.
            let _promised = match change {
                Change::Disabled(disabled) => {
                    meta.disabled = disabled;
                    None
                }
                Change::Settings { settings, overcommit } => {
                    let promising = this.layout.promise()?;
                    let more = resize(&meta, &settings)
                        .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))
                        .map_err(step(format!("change the disk of {tenant}")))?;
                    if more > 0 && !overcommit {
                        promising.keep(more)?;
                    }
                    // What was decided when it was made stays decided.
                    let (disk, inodes) = (meta.settings.disk, meta.settings.inodes);
                    meta.settings = settings;
                    meta.settings.disk = meta.settings.disk.or(disk);
                    meta.settings.inodes = meta.settings.inodes.or(inodes);
                    Some(promising)
                }
            };
            home.remember(&meta)?;
            Ok(this.record(&meta))
        });
        changed.await.map_err(|fault| step("change a tenant's record")(io::Error::other(fault)))?
    }
}

/// How the bound of a tenant's disk is held.
pub(super) fn disk_quota(meta: &Meta, common: &TenantSettings) -> DiskQuota {
    match meta.files {
        Files::Image => DiskQuota::Hard,
        // Made before there were bounds, and nobody has decided one since.
        Files::Folder if meta.settings.disk.or(common.disk).is_none() => DiskQuota::None,
        Files::Folder => DiskQuota::Soft,
    }
}

/// How many bytes new settings promise beyond the old ones.
fn resize(meta: &Meta, new: &TenantSettings) -> Result<u64, String> {
    let bytes = |size: Option<Size>| size.map_or(0, Size::bytes);
    let (before, after) = (bytes(meta.settings.disk), bytes(new.disk.or(meta.settings.disk)));
    if meta.files == Files::Image {
        if after < before {
            return Err(format!("it has {}, and a disk can only grow", Size::new(before)));
        }
        if let (Some(before), Some(after)) = (meta.settings.inodes, new.inodes)
            && before != after
        {
            return Err(format!("it was made for {before} files, which grow with the disk alone"));
        }
    }
    Ok(after.saturating_sub(before))
}

/// How long files are counted before the counting looks up; it goes on where nobody else waits.
const COUNTING: Duration = Duration::from_millis(50);
