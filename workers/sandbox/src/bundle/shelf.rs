//! What there is in the cache, and what of it can go.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::cache::{Cache, CacheError, at, remove};
use super::fingerprint::Fingerprint;
use super::recipe::PROGRAMS;
use crate::folder;

/// One bundle, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelved {
    /// The beginning of its fingerprint, by which its folder is called.
    pub name: String,
    /// Whether its stamp is that of a whole bundle.
    pub is_complete: bool,
    pub bytes: u64,
    /// When it was completed, or last touched, since the epoch.
    pub made: Option<Duration>,
    /// The machines that mount it, by what they are called.
    pub machines: Vec<String>,
    /// Whether a process uses it now.
    pub is_held: bool,
}

/// Why a bundle stays or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is that of the sources.
    Current,
    /// A machine mounts it.
    Mounted,
    /// A process uses it, or may be building it.
    Held,
    /// It is whole, and it is not said what the sources are.
    Unknown,
    /// It is of other sources than those there are.
    Stale,
    /// It is not whole, so that nothing uses it.
    Torn,
}

impl Fate {
    #[must_use]
    pub fn goes(self) -> bool {
        matches!(self, Self::Stale | Self::Torn)
    }

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Mounted => "mounted",
            Self::Held => "in use",
            Self::Unknown => "unknown",
            Self::Stale => "stale",
            Self::Torn => "torn",
        }
    }
}

impl Shelved {
    /// What it is to whoever has these sources. `is_building` says whether another process has the turn.
    #[must_use]
    pub fn fate(&self, current: Option<&Fingerprint>, is_building: bool) -> Fate {
        match current {
            Some(current) if self.is_complete && current.short() == self.name => Fate::Current,
            _ if !self.machines.is_empty() => Fate::Mounted,
            _ if self.is_held || (is_building && !self.is_complete) => Fate::Held,
            _ if !self.is_complete => Fate::Torn,
            None => Fate::Unknown,
            Some(_) => Fate::Stale,
        }
    }
}

impl Cache {
    /// Everything that there is, by name. Blocks.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn shelf(&self) -> Result<Vec<Shelved>, CacheError> {
        let mut mounted = BTreeMap::<String, Vec<String>>::new();
        for (machine, name) in self.marks()? {
            mounted.entry(name).or_default().push(machine);
        }
        let mut all = Vec::new();
        for name in self.names()? {
            if !is_name(&name) {
                continue;
            }
            let path = self.place(&name);
            let stamp = self.stamp(&path)?;
            let is_held =
                stamp.as_ref().is_some_and(|stamp| matches!(stamp.try_lock(), Err(fs::TryLockError::WouldBlock)));
            let fingerprint =
                stamp.as_ref().and_then(|stamp| Fingerprint::parse(io::read_to_string(stamp).ok()?.trim_end()));
            let is_complete = match fingerprint.filter(|fingerprint| fingerprint.short() == name) {
                // What was taken above would be in the way of whoever looks.
                Some(fingerprint) => drop_then(stamp, || self.find(&fingerprint, &PROGRAMS))?.is_some(),
                None => false,
            };
            let touched = fs::symlink_metadata(path.join(super::cache::STAMP)).or_else(|_| fs::symlink_metadata(&path));
            let made = touched.ok().and_then(|found| found.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            let machines = mounted.remove(&name).unwrap_or_default();
            all.push(Shelved { is_complete, bytes: size(&path), made, machines, is_held, name });
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Removes a bundle that nobody uses; whether it went. Blocks.
    pub(super) fn discard(&self, name: &str) -> Result<bool, CacheError> {
        let path = self.place(name);
        // Held until it is out of its place: whoever waits for it meanwhile then sees that it went.
        let stamp = self.stamp(&path)?;
        match stamp.as_ref().map(fs::File::try_lock) {
            Some(Err(fs::TryLockError::WouldBlock)) => return Ok(false),
            Some(Err(fs::TryLockError::Error(fault))) => return Err(at("lock", &path)(fault)),
            Some(Ok(())) | None => {}
        }
        self.take_out(name)?;
        remove(&self.place(&format!("{name}.log")))?;
        Ok(true)
    }

    /// Removes what was on its way in or out when a process was killed, and logs of what is not there; for whoever has the
    /// turn. Blocks.
    pub(super) fn sweep(&self) -> Result<(), CacheError> {
        for name in self.names()? {
            let is_passing = [".new-", ".gone-"].iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_name));
            if is_passing {
                remove(&self.place(&name))?;
            }
        }
        Ok(())
    }

    /// Logs of builds that failed, by the names that the bundles would have. Blocks.
    pub(super) fn logs(&self) -> Result<Vec<String>, CacheError> {
        let logs = self.names()?.into_iter().filter_map(|name| Some(name.strip_suffix(".log")?.to_owned()));
        Ok(logs.filter(|name| is_name(name)).collect())
    }

    /// Says that a machine mounts the bundle in a folder, so that it stays. Blocks.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub(crate) fn mark(bundle: &Path, machine: &str) -> Result<(), CacheError> {
        let Some((marks, name)) = marks_of(bundle) else { return Ok(()) };
        folder::own(&marks).map_err(at("make", &marks))?;
        let mark = marks.join(machine);
        kit::durable::replace(&mark, 0o600, name.as_bytes()).map_err(at("write", &mark))
    }

    /// Says that it does no more. Blocks.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub(crate) fn unmark(bundle: &Path, machine: &str) -> Result<(), CacheError> {
        let Some((marks, _)) = marks_of(bundle) else { return Ok(()) };
        remove(&marks.join(machine))
    }

    /// The machines that mount bundles, each with the bundle's name.
    pub(super) fn marks(&self) -> Result<Vec<(String, String)>, CacheError> {
        let folder = self.place(MARKS);
        let mut marks = Vec::new();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(marks),
            Err(fault) => return Err(at("list", &folder)(fault)),
        };
        for entry in entries {
            let path = entry.map_err(at("list", &folder))?.path();
            let machine = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.ends_with(".new"));
            let Some(machine) = machine else { continue };
            let name = fs::read_to_string(&path).map_err(at("read", &path))?;
            marks.push((machine.to_owned(), name.trim_end().to_owned()));
        }
        marks.sort();
        Ok(marks)
    }

    fn names(&self) -> Result<Vec<String>, CacheError> {
        let root = self.root();
        let mut names = Vec::new();
        for entry in fs::read_dir(root).map_err(at("list", root))? {
            names.extend(entry.map_err(at("list", root))?.file_name().into_string());
        }
        Ok(names)
    }
}

fn drop_then<T, U>(held: T, then: impl FnOnce() -> U) -> U {
    drop(held);
    then()
}

/// Where the marks of a bundle's cache are, and its name in them.
fn marks_of(bundle: &Path) -> Option<(PathBuf, String)> {
    let name = bundle.file_name()?.to_str().filter(|name| is_name(name))?;
    Some((bundle.parent()?.join(MARKS), name.to_owned()))
}

fn is_name(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What a folder takes up, with the little that is in it.
fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(|found| found.is_file()).map(|found| found.size()).sum()
}

const MARKS: &str = ".machines";

#[cfg(test)]
mod tests;
