//! The place of a store in its directory: one writer at a time, and the file replaced whole or not at all.
//!
//! ```text
//! lock sibling -> sweep left temporaries -> read -> write temporary (O_EXCL, 0600) -> fsync -> rename -> fsync directory
//! ```
//!
//! Killed anywhere, it leaves the old file or the new one. A temporary that a killed writer left is swept by the next,
//! which may do so because it holds the lock. It is not [`kit::durable`]: root writes here in folders of other users, so
//! the temporary has a name that nobody can foresee, and the owner is kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::digest::{hex, random};
use super::fault::ChangeError;

/// A store's directory and name, with its lock held until this is dropped.
pub(crate) struct Place {
    path: PathBuf,
    directory: OwnedFd,
    name: OsString,
    /// Whom the directory belongs to, where we may give files away.
    home: Option<Owner>,
    _lock: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) user: u32,
    pub(super) group: u32,
}

/// The steps of a replacement, each announced before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Write,
    Sync,
    Rename,
    SyncDirectory,
}

/// The file that a path leads to: a link in the last place is followed, or replacing it would cut it.
pub(super) fn resolve(path: &Path) -> Result<(PathBuf, OsString), ChangeError> {
    let fault = |source| ChangeError::Io { what: "find the directory of", path: path.to_owned(), source };
    let followed = match std::fs::canonicalize(path) {
        Ok(followed) => followed,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(other) => return Err(fault(other)),
    };
    let name = followed.file_name().ok_or_else(|| fault(io::ErrorKind::InvalidInput.into()))?.to_owned();
    let parent = match followed.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    };
    Ok((parent.to_owned(), name))
}

impl Place {
    /// Waits for the lock, and sweeps what a killed writer left.
    pub(crate) fn lock(path: &Path) -> Result<Self, ChangeError> {
        let (parent, name) = resolve(path)?;
        let io = |what, at: &Path| {
            let at = at.to_owned();
            move |fault: Errno| ChangeError::Io { what, path: at, source: fault.into() }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&parent, flags, Mode::empty()).map_err(io("open the directory", &parent))?;
        let home = home(&directory).map_err(io("ask for the owner of the directory of", path))?;
        let lock = open_lock(&directory, &name, home).map_err(io("open the lock of", path))?;
        wait_for(&lock, path)?;
        let place = Self { path: parent.join(&name), directory, name, home, _lock: lock };
        place.sweep().map_err(io("sweep beside", path))?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces a file that is no secret, keeping its owner and its mode. A new one can be read by everybody.
    pub(crate) fn put(&self, text: &[u8]) -> Result<(), ChangeError> {
        let whose = match rustix::fs::statat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(found) => (Some(Owner { user: found.st_uid, group: found.st_gid }), Mode::from_raw_mode(found.st_mode)),
            Err(_absent) => (None, PUBLIC),
        };
        self.replace_as(text, whose, &mut |_| Ok(()))
    }

    /// Replaces a store, keeping its owner; `before` is told each step and can break it off.
    pub(super) fn replace(
        &self,
        text: &[u8],
        owner: Option<Owner>,
        before: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        self.replace_as(text, (owner, PRIVATE), before)
    }

    fn replace_as(
        &self,
        text: &[u8],
        whose: (Option<Owner>, Mode),
        before: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        let io = |what| move |source| ChangeError::Io { what, path: self.path.clone(), source };
        before(Step::Create).map_err(io("make a file beside"))?;
        let temporary = self.temporary()?;
        let written = self.fill(&temporary, text, whose, before).and_then(|()| {
            before(Step::Rename).map_err(io("replace"))?;
            rustix::fs::renameat(&self.directory, &temporary, &self.directory, &self.name)
                .map_err(|fault| io("replace")(fault.into()))
        });
        if let Err(fault) = written {
            // If this fails too, the next writer sweeps it.
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
            return Err(fault);
        }
        before(Step::SyncDirectory)
            .and_then(|()| Ok(rustix::fs::fsync(&self.directory)?))
            .map_err(|source| ChangeError::Unsure { path: self.path.clone(), source })
    }

    fn temporary(&self) -> Result<OsString, ChangeError> {
        let mut name = prefix(&self.name);
        name.push(hex(&random::<UNFORESEEN_BYTES>()?));
        Ok(name)
    }

    fn fill(
        &self,
        temporary: &OsStr,
        text: &[u8],
        (owner, mode): (Option<Owner>, Mode),
        before: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<(), ChangeError> {
        let io = |what| move |source| ChangeError::Io { what, path: self.path.clone(), source };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, temporary, flags, PRIVATE)
            .map_err(|fault| io("make a file beside")(fault.into()))?;
        self.give(&file, owner)?;
        if mode != PRIVATE {
            rustix::fs::fchmod(&file, mode).map_err(|fault| io("set the mode of a file beside")(fault.into()))?;
        }
        let mut file = File::from(file);
        before(Step::Write).and_then(|()| file.write_all(text)).map_err(io("write a file beside"))?;
        before(Step::Sync).and_then(|()| file.sync_all()).map_err(io("sync a file beside"))
    }

    /// Keeps the owner: a service that may no longer open its store after a command of root's is a service down.
    ///
    /// A new store belongs to whom its directory belongs to, who could replace it anyway.
    fn give(&self, file: &OwnedFd, owner: Option<Owner>) -> Result<(), ChangeError> {
        let is_new = owner.is_none();
        let Some(owner) = owner.or(self.home) else { return Ok(()) };
        let user = rustix::process::geteuid();
        if user.as_raw() == owner.user && rustix::process::getegid().as_raw() == owner.group {
            return Ok(());
        }
        let given = rustix::fs::fchown(file, Some(Uid::from_raw(owner.user)), Some(Gid::from_raw(owner.group)));
        match given {
            // A new one can be ours, and the group opens nothing at mode 0600, so another group is no loss.
            Err(_) if is_new || user.as_raw() == owner.user => Ok(()),
            Err(fault) => {
                Err(ChangeError::NotOwner { path: self.path.clone(), owner: owner.user, source: fault.into() })
            }
            Ok(()) => Ok(()),
        }
    }

    fn sweep(&self) -> Result<(), Errno> {
        let prefix = prefix(&self.name);
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(prefix.as_bytes()) {
                match rustix::fs::unlinkat(&self.directory, entry.file_name(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(())
    }
}

/// The lock is a file of its own: the store's is replaced, and a lock on what is gone locks nobody out.
///
/// It belongs to whom the store belongs to, or that user could never take it after root had.
fn open_lock(directory: &OwnedFd, name: &OsStr, home: Option<Owner>) -> Result<OwnedFd, Errno> {
    let mut lock = name.to_owned();
    lock.push(".lock");
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    loop {
        match rustix::fs::openat(directory, &lock, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let made = match rustix::fs::openat(directory, &lock, flags | OFlags::CREATE | OFlags::EXCL, PRIVATE) {
            Err(Errno::EXIST) => continue,
            made => made?,
        };
        if let Some(home) = home {
            let store = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let owner = store.map_or(home, |store| Owner { user: store.st_uid, group: store.st_gid });
            // Where an owner does not exist for us, as in a user namespace, the lock is ours.
            let _ = rustix::fs::fchown(&made, Some(Uid::from_raw(owner.user)), Some(Gid::from_raw(owner.group)));
        }
        return Ok(made);
    }
}

/// Only root may give files away.
fn home(directory: &OwnedFd) -> Result<Option<Owner>, Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let stat = rustix::fs::fstat(directory)?;
    Ok(Some(Owner { user: stat.st_uid, group: stat.st_gid }))
}

fn wait_for(lock: &OwnedFd, path: &Path) -> Result<(), ChangeError> {
    let attempt = || rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive);
    match kit::patience::until(LOCK_WAIT, attempt, |fault| matches!(*fault, Errno::AGAIN | Errno::INTR)) {
        Err(Errno::AGAIN | Errno::INTR) => Err(ChangeError::Busy { path: path.to_owned(), waited: LOCK_WAIT }),
        other => other.map_err(|fault| ChangeError::Io { what: "lock", path: path.to_owned(), source: fault.into() }),
    }
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".new-");
    prefix
}

/// Of a temporary's name.
const UNFORESEEN_BYTES: usize = 6;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

const PUBLIC: Mode = PRIVATE.union(Mode::RGRP).union(Mode::ROTH);

/// A writer holds the lock for some milliseconds; who holds it this long has stopped.
const LOCK_WAIT: Duration = Duration::from_secs(30);
