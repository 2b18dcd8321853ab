use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::{Strategy as _, any, prop, prop_assert};

use super::{KeyError, MOST_EARLIER, Ring, load, read, read_or_make, rotate};
use crate::app::words::Keys;

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const GRACE: Duration = Duration::from_secs(600);

/// The file counts milliseconds.
fn now() -> Duration {
    Duration::from_secs(kit::clock::since_epoch().as_secs())
}

/// Which key of the file seals then.
fn sealing(keys: &Keys, at: Duration) -> [u8; 32] {
    keys.ring().expect("keys").sealing_for_test(at)
}

fn opens(keys: &Keys, key: [u8; 32]) -> bool {
    keys.0.iter().any(|known| known.bytes == key)
}

#[test]
fn a_rotated_file_keeps_the_keys_before_until_their_sessions_have_expired() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.key");
    let first = read_or_make(&path, WEEK).expect("made");
    let now = now();
    assert_eq!(rotate(&path, now, Duration::ZERO).expect("rotated"), 1);
    let both = read(&path, WEEK).expect("two keys");
    assert_eq!(both.0.len(), 2);
    assert!(both.0.first() == first.0.first());
    for more in 2..=MOST_EARLIER {
        assert_eq!(rotate(&path, now, Duration::ZERO).expect("rotated"), more);
    }
    let again = |now| rotate(&path, now, Duration::ZERO);
    assert!(matches!(again(now), Err(KeyError::TooSoon { wait, .. }) if wait == WEEK));
    assert!(again(now + WEEK - Duration::from_millis(1)).is_err());
    assert_eq!(again(now + WEEK).expect("rotated"), 1, "what has expired makes room");
}

#[test]
fn a_fresh_key_is_known_at_once_and_seals_when_its_time_has_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.key");
    let old = read_or_make(&path, WEEK).expect("made").0[0].bytes;
    let now = now();
    rotate(&path, now, GRACE).expect("rotated");
    let keys = read(&path, WEEK).expect("two keys");
    let fresh = keys.0[1].bytes;
    let last = now + GRACE - Duration::from_millis(1);
    assert_eq!([now, last, now + GRACE].map(|at| sealing(&keys, at) == fresh), [false, false, true]);
    assert_eq!(sealing(&keys, last), old);
    // What the old one sealed last lives for a week from then.
    let ring = load(&path).expect("read").expect("there");
    let known = |at| opens(&ring.keys(at, WEEK), old);
    assert_eq!([now + WEEK, last + WEEK, now + GRACE + WEEK].map(known), [true, true, false]);
}

#[test]
fn a_fresh_key_waits_for_as_long_as_a_session_lives_and_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.key");
    read_or_make(&path, WEEK).expect("made");
    let before = std::fs::read(&path).expect("read");
    assert!(
        matches!(rotate(&path, now(), WEEK + Duration::from_secs(1)), Err(KeyError::TooLate(most)) if most == WEEK)
    );
    assert_eq!(std::fs::read(&path).expect("read"), before);
    rotate(&path, now(), WEEK).expect("rotated");
}

#[test]
fn a_file_that_is_loose_or_broken_or_missing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.key");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("changed");
    assert!(matches!(read(&path, WEEK), Err(KeyError::Io { .. })));
    assert_eq!(rotate(&path, Duration::ZERO, GRACE).expect("made"), 0);
    for (bits, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
        mode(bits);
        assert_eq!(read(&path, WEEK).is_ok(), good, "{bits:o}");
    }
    mode(0o600);
    for (length, good) in [(31, false), (32, true), (33, false), (72, true), (192, true), (232, false)] {
        std::fs::write(&path, vec![7; length]).expect("written");
        assert_eq!(read(&path, WEEK).is_ok(), good, "{length}");
    }
}

#[test]
fn a_file_of_one_key_and_of_keys_that_were_replaced_at_once_is_read_as_it_was() {
    let (day, lifetime) = (Duration::from_secs(24 * 3600), WEEK);
    let millis = |at: Duration| u64::try_from(at.as_millis()).expect("fits").to_be_bytes();
    let mut bytes = vec![3; 32];
    for (key, replaced) in [(2, 9 * day), (1, 8 * day)] {
        bytes.extend([key; 32]);
        bytes.extend(millis(replaced));
    }
    for (length, at, known) in
        [(32, 10 * day, &[3][..]), (72, 10 * day, &[2, 3]), (112, 10 * day, &[1, 2, 3]), (112, 15 * day, &[2, 3])]
    {
        let keys = Ring::parse(&bytes[..length]).expect("keys").keys(at, lifetime);
        assert_eq!(keys.0.iter().map(|key| key.bytes[0]).collect::<Vec<_>>(), known, "{length}");
        assert_eq!(sealing(&keys, at), [3; 32]);
    }
}

/// What happens at one moment.
#[derive(Clone, Debug)]
enum Happening {
    Rotates,
    /// This edge reads the file again, as it does now and then.
    Reloads(bool),
    /// This edge opens a session.
    Seals(bool),
}

/// An edge with what it read, and since when there is more to read.
struct Edge {
    keys: Keys,
    behind: Option<Duration>,
}

fn reading(path: &Path, at: Duration) -> Edge {
    Edge { keys: load(path).expect("read").expect("there").keys(at, WEEK), behind: None }
}

proptest::proptest! {
    #[test]
    fn of_two_edges_that_reload_within_the_grace_each_opens_whatever_the_other_sealed(
        happenings in prop::collection::vec(
            (
                0..=GRACE.as_secs() * 2,
                proptest::prop_oneof![
                    1 => proptest::strategy::Just(Happening::Rotates),
                    3 => any::<bool>().prop_map(Happening::Reloads),
                    4 => any::<bool>().prop_map(Happening::Seals),
                ],
            ),
            1..40,
        )
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.key");
        read_or_make(&path, WEEK).expect("made");
        let mut at = now();
        let mut edges = [reading(&path, at), reading(&path, at)];
        let mut sealed = Vec::new();
        for (wait, happening) in happenings {
            at += Duration::from_secs(wait);
            // The promise is for edges that have read the file within the grace of each change.
            for edge in &mut edges {
                if let Some(late) = edge.behind.map(|behind| behind + GRACE).filter(|late| *late <= at) {
                    *edge = reading(&path, late);
                }
            }
            match happening {
                Happening::Rotates => {
                    if rotate(&path, at, GRACE).is_ok() {
                        for edge in &mut edges {
                            edge.behind.get_or_insert(at);
                        }
                    }
                }
                Happening::Reloads(which) => edges[usize::from(which)] = reading(&path, at),
                Happening::Seals(which) => sealed.push((sealing(&edges[usize::from(which)].keys, at), at)),
            }
            for (key, issued) in &sealed {
                for edge in &edges {
                    prop_assert!(opens(&edge.keys, *key) || at >= *issued + WEEK, "{at:?}: sealed at {issued:?}");
                }
            }
        }
    }
}
