//! The file of the keys that seal public sessions: the newest first, then those before it that still open some.
//!
//! A file of 32 bytes is one key. Each earlier key adds 40: the key, and when another took its place, in milliseconds
//! since the epoch. After the longest life of a session it opens nothing any more, and is left out.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::words::Keys;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{what} {}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} does not hold session keys; remove it, which ends the sessions that it sealed", .0.display())]
    Broken(PathBuf),
    #[error("{} has mode {mode:04o}: others can read the session keys; run: chmod 600 {}", path.display(), path.display())]
    Loose { path: PathBuf, mode: u32 },
    #[error("{} holds {MOST_EARLIER} earlier keys that still open sessions; it can be changed again in {} h", path.display(), wait.as_secs().div_ceil(3600))]
    TooSoon { path: PathBuf, wait: Duration },
    #[error("the system has no randomness")]
    NoRandomness,
}

type Key = [u8; KEY_BYTES];

#[derive(Clone)]
struct Ring {
    newest: Key,
    earlier: Vec<Earlier>,
}

#[derive(Clone)]
struct Earlier {
    key: Key,
    /// Since the epoch.
    replaced: Duration,
}

/// A key for one life of a service.
pub(super) fn ephemeral() -> Result<Keys, KeyError> {
    Ok(Keys(vec![random()?]))
}

/// The keys in a file that several edges may share.
pub(super) fn read(path: &Path, lifetime: Duration) -> Result<Keys, KeyError> {
    let ring = load(path)?.ok_or_else(|| at("read", path)(io::ErrorKind::NotFound.into()))?;
    Ok(ring.keys(kit::clock::since_epoch(), lifetime))
}

/// The same for the file of a state, which is made when it is not there.
pub(super) fn read_or_make(path: &Path, lifetime: Duration) -> Result<Keys, KeyError> {
    let ring = match load(path)? {
        Some(ring) => ring,
        None => write(path, Ring { newest: random()?, earlier: Vec::new() })?,
    };
    Ok(ring.keys(kit::clock::since_epoch(), lifetime))
}

/// Puts a fresh key in front. The one before it is kept until no session that it sealed can be alive.
///
/// Says how many earlier keys the file holds now; none when it was made.
///
/// # Errors
/// When the file cannot be read or written, or holds as many keys as it may.
pub fn rotate(path: &Path, now: Duration) -> Result<usize, KeyError> {
    let lifetime = crate::edge::config::Sessions::default().lifetime;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Of two changes at once one would be lost, and with it what an edge sealed meanwhile.
    let turn = File::open(folder).map_err(at("open", folder))?;
    turn.lock().map_err(at("lock", folder))?;
    let newest = random()?;
    let Some(mut ring) = load(path)? else {
        write(path, Ring { newest, earlier: Vec::new() })?;
        return Ok(0);
    };
    ring.earlier.retain(|earlier| earlier.lives(now, lifetime));
    if ring.earlier.len() >= MOST_EARLIER {
        let first = ring.earlier.iter().map(|earlier| earlier.replaced.saturating_add(lifetime)).min();
        let wait = first.unwrap_or_default().saturating_sub(now);
        return Err(KeyError::TooSoon { path: path.to_owned(), wait });
    }
    ring.earlier.insert(0, Earlier { key: std::mem::replace(&mut ring.newest, newest), replaced: now });
    Ok(write(path, ring)?.earlier.len())
}

impl Ring {
    fn keys(&self, now: Duration, lifetime: Duration) -> Keys {
        let earlier = self.earlier.iter().filter(|earlier| earlier.lives(now, lifetime)).map(|earlier| earlier.key);
        Keys(std::iter::once(self.newest).chain(earlier).collect())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (newest, mut rest) = bytes.split_first_chunk()?;
        let mut earlier = Vec::new();
        while let Some((key, after)) = rest.split_first_chunk() {
            let (replaced, after) = after.split_first_chunk()?;
            earlier.push(Earlier { key: *key, replaced: Duration::from_millis(u64::from_be_bytes(*replaced)) });
            rest = after;
        }
        (rest.is_empty() && earlier.len() <= MOST_EARLIER).then_some(Self { newest: *newest, earlier })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.newest.to_vec();
        for Earlier { key, replaced } in &self.earlier {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&u64::try_from(replaced.as_millis()).unwrap_or(u64::MAX).to_be_bytes());
        }
        bytes
    }
}

impl Earlier {
    fn lives(&self, now: Duration, lifetime: Duration) -> bool {
        now < self.replaced.saturating_add(lifetime)
    }
}

fn load(path: &Path) -> Result<Option<Ring>, KeyError> {
    let file = match File::open(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(at("read", path))?,
    };
    let mode = file.metadata().map_err(at("look at", path))?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Loose { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(at("read", path))?;
    Ring::parse(&bytes).map(Some).ok_or_else(|| KeyError::Broken(path.to_owned()))
}

fn write(path: &Path, ring: Ring) -> Result<Ring, KeyError> {
    kit::durable::replace(path, 0o600, &ring.bytes()).map_err(at("write", path))?;
    Ok(ring)
}

fn random() -> Result<Key, KeyError> {
    let mut bytes = [0; KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_unspecified| KeyError::NoRandomness)?;
    Ok(bytes)
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::Io { what, path, source }
}

const KEY_BYTES: usize = 32;

/// Each costs a try for every id that nobody sealed.
const MOST_EARLIER: usize = 4;

/// One more than the largest file, to see that there is more.
const MOST_BYTES: u64 = 32 + 40 * 4 + 1;

#[cfg(test)]
mod tests {
    use super::{KeyError, MOST_EARLIER, read, read_or_make, rotate};
    use std::time::Duration;

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    #[test]
    fn a_rotated_file_keeps_the_keys_before_until_their_sessions_have_expired() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.key");
        let first = read_or_make(&path, WEEK).expect("made");
        // The file counts milliseconds.
        let now = Duration::from_secs(kit::clock::since_epoch().as_secs());
        assert_eq!(rotate(&path, now).expect("rotated"), 1);
        let both = read(&path, WEEK).expect("two keys");
        assert_eq!((both.0.len(), both.0.get(1)), (2, first.0.first()));
        for more in 2..=MOST_EARLIER {
            assert_eq!(rotate(&path, now).expect("rotated"), more);
        }
        assert!(matches!(rotate(&path, now), Err(KeyError::TooSoon { wait, .. }) if wait == WEEK));
        let last = now + WEEK - Duration::from_millis(1);
        assert!(rotate(&path, last).is_err());
        assert_eq!(rotate(&path, now + WEEK).expect("rotated"), 1, "what has expired makes room");
    }

    #[test]
    fn a_file_that_is_loose_or_broken_or_missing_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.key");
        assert!(matches!(read(&path, WEEK), Err(KeyError::Io { .. })));
        assert_eq!(rotate(&path, Duration::ZERO).expect("made"), 0);
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("changed");
            assert_eq!(read(&path, WEEK).is_ok(), good, "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("changed");
        for (length, good) in [(31, false), (32, true), (33, false), (72, true), (192, true), (232, false)] {
            std::fs::write(&path, vec![7; length]).expect("written");
            assert_eq!(read(&path, WEEK).is_ok(), good, "{length}");
        }
    }
}
