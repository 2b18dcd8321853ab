//! The file of the keys that seal public sessions: the newest first, then those before it that still open some.
//!
//! A file of 32 bytes is one key. Each earlier key adds 40: the key, and when another takes its place, in milliseconds
//! since the epoch. That moment lies ahead when a fresh key comes in, so that every edge with this file knows it before
//! one of them seals with it. After the longest life of a session past it, the earlier key opens nothing any more and is
//! left out.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::secrets::{NoRandomness, random};
use super::words::{Key as Known, Keys};
use crate::regular;

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
    #[error("a fresh key can wait for {} h at most, as long as a session lives", .0.as_secs() / 3600)]
    TooLate(Duration),
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
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
    /// Since the epoch; until then it seals.
    replaced: Duration,
}

/// A key for one life of a service.
pub(super) fn ephemeral() -> Result<Keys, KeyError> {
    Ok(Keys::one(random()?))
}

/// The keys in a file that several edges may share.
pub(super) fn read(path: &Path, lifetime: Duration) -> Result<Keys, KeyError> {
    let ring = load(path)?.ok_or_else(|| at("read", path)(io::ErrorKind::NotFound.into()))?;
    Ok(ring.keys(kit::clock::since_epoch(), lifetime))
}

/// The same for the file of a state that is only looked at; none where it is not there yet.
pub(super) fn read_if_there(path: &Path, lifetime: Duration) -> Result<Option<Keys>, KeyError> {
    Ok(load(path)?.map(|ring| ring.keys(kit::clock::since_epoch(), lifetime)))
}

/// The same for the file of a state, which is made when it is not there.
pub(super) fn read_or_make(path: &Path, lifetime: Duration) -> Result<Keys, KeyError> {
    let ring = match load(path)? {
        Some(ring) => ring,
        None => write(path, Ring { newest: random()?, earlier: Vec::new() })?,
    };
    Ok(ring.keys(kit::clock::since_epoch(), lifetime))
}

/// Puts a fresh key in front, which seals after `grace`. The one before it is kept until no session that it sealed can
/// be alive.
///
/// Says how many earlier keys the file holds now; none when it was made, and then its key seals at once.
///
/// # Errors
/// When the file cannot be read or written, holds as many keys as it may, or the fresh one would wait too long.
pub fn rotate(path: &Path, now: Duration, grace: Duration) -> Result<usize, KeyError> {
    let lifetime = crate::edge::config::Sessions::default().lifetime;
    if grace > lifetime {
        return Err(KeyError::TooLate(lifetime));
    }
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
    let replaced = now.saturating_add(grace);
    ring.earlier.insert(0, Earlier { key: std::mem::replace(&mut ring.newest, newest), replaced });
    Ok(write(path, ring)?.earlier.len())
}

impl Ring {
    fn keys(&self, now: Duration, lifetime: Duration) -> Keys {
        let newest = std::iter::once((self.newest, true));
        let earlier = self.earlier.iter().map(|earlier| (earlier.key, earlier.lives(now, lifetime)));
        // Each seals from when it takes the place of the one before it.
        let begins = self.earlier.iter().map(|earlier| earlier.replaced).chain([Duration::ZERO]);
        let all = newest.chain(earlier).zip(begins);
        let mut keys: Vec<_> =
            all.filter(|((_, lives), _)| *lives).map(|((bytes, _), seals_from)| Known { bytes, seals_from }).collect();
        keys.reverse();
        Keys(keys)
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
    let file = match regular::open(path).map_err(io::Error::from) {
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
mod tests;
