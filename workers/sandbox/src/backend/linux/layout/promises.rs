//! How much disk tenants were promised, and how much there is to keep the promises with.
//!
//! Images are sparse: a promise that nobody has called in takes no room, so the file system alone would let any number of
//! them be made, and the first tenants to come would break those of the others.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FlockOperation, flock, statvfs};

use super::{Files, Layout, Meta, Stage, open_lock, read_json, step};
use crate::backend::BackendError;
use crate::settings::Size;

/// That nobody else makes a promise meanwhile: what was found out holds until it is written down.
#[derive(Debug)]
pub(in crate::backend::linux) struct Promising {
    _lock: File,
    /// Bytes that are free and not promised.
    unpromised: u64,
}

impl Layout {
    /// Counts what is free and not promised yet.
    pub(in crate::backend::linux) fn promise(&self) -> Result<Promising, BackendError> {
        let path = self.state.join("promises.lock");
        let naming = || step(format!("count what is promised below {}", self.state.display()));
        let lock = self.ballast.write(|| open_lock(&path), kit::ballast::is_full).map_err(naming())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(naming())?;
        let found = statvfs(&self.state).map_err(io::Error::from).map_err(naming())?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let reserve = (found.f_blocks.saturating_mul(found.f_frsize) / RESERVED_PART).min(MOST_RESERVED);
        let unpromised = free.saturating_sub(reserve).saturating_sub(self.outstanding().map_err(naming())?);
        Ok(Promising { _lock: lock, unpromised })
    }

    /// What images may still grow by.
    fn outstanding(&self) -> io::Result<u64> {
        let mut sum: u64 = 0;
        for entry in fs::read_dir(self.state.join("tenants"))?.flatten() {
            let folder = entry.path();
            // A record that cannot be read promises nothing that could be counted; its owner is told when it is used.
            let Ok(meta) = read_json::<Meta>(&folder.join("meta.json")) else { continue };
            if meta.files != Files::Image || meta.stage == Stage::Destroyed {
                continue;
            }
            let image = folder.join("disk.img").metadata();
            let (length, taken) = image.map_or((0, 0), |found| (found.len(), found.blocks() * 512));
            let promised = meta.settings.disk.map_or(0, Size::bytes).max(length);
            sum = sum.saturating_add(promised.saturating_sub(taken));
        }
        Ok(sum)
    }
}

impl Promising {
    /// What a tenant gets of which nobody decided.
    pub(in crate::backend::linux) fn usual(&self) -> u64 {
        (self.unpromised / USUAL_PART).clamp(LEAST_USUAL, MOST_USUAL)
    }

    /// Whether this much more can be promised.
    pub(in crate::backend::linux) fn keep(&self, more: u64) -> Result<(), BackendError> {
        if more > self.unpromised {
            return Err(BackendError::NoRoom { wanted: Size::new(more), free: Size::new(self.unpromised) });
        }
        Ok(())
    }
}

/// For the host itself and for piles: a twentieth, and never more than one GiB.
const RESERVED_PART: u64 = 20;
const MOST_RESERVED: u64 = 1 << 30;

/// A quarter of what is there, so that the next tenants find something too.
const USUAL_PART: u64 = 4;
const MOST_USUAL: u64 = 10 << 30;

/// Less would not hold a toolchain.
const LEAST_USUAL: u64 = 256 << 20;
