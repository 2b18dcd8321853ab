//! The ranges of user ids on the host, of which each tenant has one that no other has had.
//!
//! `uids.json` says which is next. It may be gone or older than the tenants where only a part of the state was brought
//! back, so what the tenants' own records say counts as well.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Layout, Meta, VERSION, open_lock, read_json, step, write_json};
use crate::backend::BackendError;

#[derive(Serialize, Deserialize)]
struct Ranges {
    version: u32,
    next: u32,
}

impl Layout {
    /// Takes a range of user ids that no tenant has had and no one else was promised.
    pub(in crate::backend::linux) fn take_range(&self) -> Result<u32, BackendError> {
        let path = self.state.join("uids.json");
        let naming = || step(format!("take a range of user ids from {}", path.display()));
        let lock = open_lock(&self.state.join("uids.lock")).map_err(naming())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(naming())?;
        let (written, unreadable) = match read_json::<Ranges>(&path) {
            Ok(ranges) if ranges.version == VERSION => (ranges.next, Unreadable::PassOver),
            Ok(_) => return Err(naming()(io::Error::other("it was written by a newer version"))),
            // Now the tenants' records are all that tells which ranges are taken.
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => (FIRST_RANGE, Unreadable::Refuse),
            Err(fault) => return Err(naming()(fault)),
        };
        let none_left = || naming()(io::Error::other("there are no more"));
        let mut next = match self.last_recorded(unreadable)? {
            Some(last) => written.max(above(last).ok_or_else(none_left)?),
            None => written,
        };
        let promised = promised();
        while overlaps(next, &promised) {
            next =
                next.checked_add(FIRST_RANGE).filter(|next| next.checked_add(RANGE).is_some()).ok_or_else(none_left)?;
        }
        let after = next.checked_add(FIRST_RANGE).ok_or_else(none_left)?;
        // Written before it is used: a crash in between loses a range, which nobody misses.
        write_json(&path, &Ranges { version: VERSION, next: after }).map_err(naming())?;
        Ok(next)
    }

    /// The highest range that a tenant's record names, be it that of a sandbox or of a pile that is kept.
    fn last_recorded(&self, unreadable: Unreadable) -> Result<Option<u32>, BackendError> {
        let folder = self.state.join("tenants");
        let mut last = None;
        for entry in fs::read_dir(&folder).map_err(step(format!("read {}", folder.display())))? {
            let path = entry.map_err(step(format!("read {}", folder.display())))?.path().join("meta.json");
            match recorded(&path) {
                Ok(first) => last = last.max(first),
                Err(fault) => match unreadable {
                    Unreadable::PassOver => {}
                    Unreadable::Refuse => return Err(step(format!("read {}", path.display()))(fault)),
                },
            }
        }
        Ok(last)
    }
}

/// Makes a folder for a worker whose tenants are there for a moment: they have user ids that no other worker's have, which
/// so are not used up.
pub(crate) fn set_aside(state: &Path) -> Result<(), BackendError> {
    let path = Layout::open(state)?.state.join("uids.json");
    let ranges = Ranges { version: VERSION, next: SET_ASIDE };
    write_json(&path, &ranges).map_err(step(format!("write {}", path.display())))
}

/// What to do about a tenant's record that cannot be read.
#[derive(Clone, Copy)]
enum Unreadable {
    /// Its range is below the next, which is known: one tenant's fault must not keep all others from being made.
    PassOver,
    /// Its range might be the one that is given.
    Refuse,
}

fn recorded(meta: &Path) -> io::Result<Option<u32>> {
    match read_json::<Meta>(meta) {
        Ok(meta) => Ok(meta.first_uid),
        // A making that was cut short before anything ran, or no folder at all.
        Err(fault) if matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The lowest place for a range that lies wholly above another.
fn above(first: u32) -> Option<u32> {
    first.checked_add(RANGE)?.checked_next_multiple_of(FIRST_RANGE)
}

/// The ranges that this host's tables promise to users and their containers.
fn promised() -> Vec<(u64, u64)> {
    ["/etc/subuid", "/etc/subgid"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|text| text.lines().filter_map(promise).collect::<Vec<_>>())
        .collect()
}

fn promise(line: &str) -> Option<(u64, u64)> {
    let mut parts = line.trim().split(':').skip(1);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn overlaps(first: u32, promised: &[(u64, u64)]) -> bool {
    let (first, end) = (u64::from(first), u64::from(first) + u64::from(RANGE));
    promised.iter().any(|(start, count)| *start < end && first < start.saturating_add(*count))
}

/// Also the distance between ranges, so that an id of the host tells its tenant at a glance.
const FIRST_RANGE: u32 = 100_000;

/// Room for two tenants at the very end, above which no other range is given.
const SET_ASIDE: u32 = u32::MAX / FIRST_RANGE * FIRST_RANGE - 2 * FIRST_RANGE;

/// How many ids a range has.
pub(in crate::backend::linux) const RANGE: u32 = 65_536;

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::{Layout, above, overlaps, promise};
    use crate::backend::linux::layout::{Meta, Stage};

    /// A state whose tenants have these ranges, the first a destroyed one's.
    fn state(tenants: &[(&str, u32)]) -> (TempDir, Layout) {
        let state = tempfile::tempdir().unwrap();
        let layout = Layout::open(state.path()).unwrap();
        let mut stage = Stage::Destroyed;
        for (name, first) in tenants {
            let folder = state.path().join("tenants").join(name);
            fs::create_dir(&folder).unwrap();
            let meta = Meta { stage, ..Meta::new(Some(*first)) };
            fs::write(folder.join("meta.json"), serde_json::to_vec(&meta).unwrap()).unwrap();
            stage = Stage::Ready;
        }
        (state, layout)
    }

    #[test]
    fn a_range_of_user_ids_is_never_given_twice() {
        let (state, layout) = state(&[]);
        let first = layout.take_range().unwrap();
        let second = Layout::open(state.path()).unwrap().take_range().unwrap();
        assert!(first.is_multiple_of(100_000) && second >= first + 100_000, "{first} {second}");
    }

    #[test]
    fn without_its_file_the_next_range_is_above_every_tenants_and_is_written_down_again() {
        for tenants in [[("alice", 3_000_000_000), ("bob", 2_000_000_000)], [("a", 100_000), ("b", 3_000_000_000)]] {
            let (state, layout) = state(&tenants);
            let next = layout.take_range().unwrap();
            assert!(next >= 3_000_100_000, "{next}");
            // The file alone knows now.
            fs::remove_dir_all(state.path().join("tenants")).unwrap();
            fs::create_dir(state.path().join("tenants")).unwrap();
            assert!(layout.take_range().unwrap() >= next + 100_000);
        }
    }

    #[test]
    fn a_file_that_is_older_than_a_tenant_is_not_believed() {
        let (state, layout) = state(&[("below", 2_000_000_000), ("above", 3_000_000_000)]);
        fs::write(state.path().join("uids.json"), r#"{"version":1,"next":2500000000}"#).unwrap();
        assert!(layout.take_range().unwrap() >= 3_000_100_000);
        let (state, layout) = self::state(&[("below", 2_000_000_000)]);
        fs::write(state.path().join("uids.json"), r#"{"version":1,"next":3000000000}"#).unwrap();
        assert!((3_000_000_000..4_000_000_000).contains(&layout.take_range().unwrap()));
    }

    #[test]
    fn a_record_that_cannot_be_read_matters_only_where_the_file_is_gone() {
        let (state, layout) = state(&[("broken", 100_000), ("whole", 200_000)]);
        fs::write(state.path().join("tenants/broken/meta.json"), "{").unwrap();
        let refused = layout.take_range().unwrap_err().to_string();
        assert!(refused.contains("broken/meta.json"), "{refused}");
        assert!(!state.path().join("uids.json").exists());
        fs::write(state.path().join("uids.json"), r#"{"version":1,"next":300000}"#).unwrap();
        assert!(layout.take_range().unwrap() >= 300_000);
    }

    #[test]
    fn what_is_set_aside_are_two_ranges_that_are_far_from_all_others() {
        let state = tempfile::tempdir().unwrap();
        super::set_aside(state.path()).unwrap();
        let layout = Layout::open(state.path()).unwrap();
        let (one, other) = (layout.take_range().unwrap(), layout.take_range().unwrap());
        assert_eq!((one, other), (super::SET_ASIDE, super::SET_ASIDE + super::FIRST_RANGE));
        assert!(one > 4_000_000_000 && other.checked_add(super::RANGE).is_some());
        assert!(layout.take_range().is_err(), "and no third");
    }

    #[test]
    fn a_range_above_another_shares_no_id_with_it() {
        assert_eq!(above(100_000), Some(200_000));
        assert_eq!(above(134_464), Some(200_000));
        assert_eq!(above(134_465), Some(300_000));
        assert_eq!(above(u32::MAX - 65_535), None);
    }

    #[test]
    fn a_promised_range_is_passed_over_to_its_last_id() {
        let promised = [promise("user:100000:65536").unwrap()];
        assert!(overlaps(165_535, &promised));
        assert!(!overlaps(165_536, &promised));
        assert!(overlaps(34_465, &promised));
        assert!(!overlaps(34_464, &promised));
        assert_eq!(promise("# nothing"), None);
    }
}
