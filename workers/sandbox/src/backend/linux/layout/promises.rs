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
        usual_of(self.unpromised)
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

/// A disk that leaves room for the disks of many that come later.
fn usual_of(unpromised: u64) -> u64 {
    let share = (unpromised / USUAL_PART).clamp(GOOD_USUAL, MOST_USUAL);
    share.min(unpromised / LARGEST_PART).max(LEAST_USUAL)
}

/// A small host of 60 GB has some forty tenants before it has to refuse one.
const USUAL_PART: u64 = 16;
const MOST_USUAL: u64 = 10 << 30;

/// Holds a toolchain; but not at the price of all that is left: one tenant takes no more of that than a quarter.
const GOOD_USUAL: u64 = 1 << 30;
const LARGEST_PART: u64 = 4;

/// Less would not hold the packages of one program.
const LEAST_USUAL: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::{LEAST_USUAL, Promising, usual_of};
    use crate::backend::BackendError;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn the_usual_disk_is_a_sixteenth_and_leaves_three_quarters_to_others() {
        for (unpromised, usual) in [
            (0, 256 * MIB),
            (256 * MIB, 256 * MIB),
            (GIB, 256 * MIB),
            (2 * GIB, 512 * MIB),
            (4 * GIB - 4, GIB - 1),
            (4 * GIB, GIB),
            (16 * GIB, GIB),
            (16 * GIB + 16, GIB + 1),
            (64 * GIB, 4 * GIB),
            (160 * GIB - 16, 10 * GIB - 1),
            (160 * GIB, 10 * GIB),
            (1 << 50, 10 * GIB),
            (u64::MAX, 10 * GIB),
        ] {
            assert_eq!(usual_of(unpromised), usual, "{unpromised}");
        }
    }

    #[test]
    fn a_host_of_sixty_gigabytes_takes_more_than_thirty_tenants_of_whom_nobody_decided() {
        let mut free = 60_000_000_000;
        let mut tenants = 0;
        while free >= usual_of(free) {
            free -= usual_of(free);
            tenants += 1;
        }
        assert!(tenants > 30 && free < LEAST_USUAL, "{tenants}, {free} left");
    }

    #[test]
    fn a_promise_that_cannot_be_kept_is_refused_with_how_to_go_on() {
        let lock = || tempfile::tempfile().unwrap();
        let full = Promising { _lock: lock(), unpromised: LEAST_USUAL };
        full.keep(full.usual()).unwrap();
        let fuller = Promising { _lock: lock(), unpromised: LEAST_USUAL - 1 };
        let refused = fuller.keep(fuller.usual()).unwrap_err();
        assert!(matches!(refused, BackendError::NoRoom { .. }));
        let text = refused.to_string();
        assert!(text.contains("a smaller --disk") && text.contains("--overcommit"), "{text}");
    }
}
