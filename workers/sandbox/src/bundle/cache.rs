//! The bundles that were built on this host.
//!
//! ```text
//! ROOT/0123456789abcdef/           a bundle, by the beginning of its fingerprint: what machines mount
//! ROOT/0123456789abcdef/.complete  its whole fingerprint, written last; whoever uses the bundle holds a shared lock on it
//! ROOT/0123456789abcdef.log        of a build that failed
//! ROOT/.machines/NAME              which bundle the machine of this name mounts
//! ROOT/.lock .builder.json .work   whose turn it is to build, the builder that there may be, and what it works on
//! ROOT/.new-… .gone-…              on its way in or out
//! ```
//!
//! A folder without its stamp, or with another's, is no bundle, whatever is in it; the next build puts one in its place.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use crate::folder;

/// The folder of all bundles for machines of one architecture.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A bundle that is whole, and stays while this is held.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    fingerprint: Fingerprint,
    _held: File,
}

/// What could not be done with a place in the cache.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}", path.display())]
pub struct CacheError {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    #[source]
    pub(super) source: io::Error,
}

impl Bundle {
    /// The folder of its programs.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

impl Cache {
    /// Makes the folder where it is not there.
    ///
    /// # Errors
    /// When it is not this user's alone.
    pub fn open(root: &Path) -> Result<Self, CacheError> {
        folder::own(root).map_err(at("use the folder", root))?;
        Ok(Self { root: root.to_owned() })
    }

    /// The same where nothing is to be made or read.
    pub(super) fn pretended(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What a builder works on, and is made from.
    pub(super) fn work(&self) -> PathBuf {
        self.root.join(".work")
    }

    pub(super) fn template(&self) -> PathBuf {
        self.work().join("lima.yaml")
    }

    /// Where a builder builds.
    pub(super) fn scratch(&self) -> PathBuf {
        self.work().join("target")
    }

    /// The record of a builder.
    pub(super) fn record(&self) -> PathBuf {
        self.root.join(".builder.json")
    }

    /// Where the programs of a bundle lie before it is one.
    pub(super) fn staged(&self, name: &str) -> PathBuf {
        self.root.join(format!(".new-{name}"))
    }

    /// The bundle with this fingerprint, if it is whole. Blocks.
    pub(super) fn find(&self, fingerprint: &Fingerprint, programs: &[&str]) -> Result<Option<Bundle>, CacheError> {
        let path = self.place(fingerprint.short());
        let Some(held) = self.stamp(&path)? else { return Ok(None) };
        // Whoever removes it holds it alone, and has taken it out of its place before.
        held.lock_shared().map_err(at("hold", &path))?;
        let is_there = fs::symlink_metadata(path.join(STAMP)).is_ok_and(|found| {
            held.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino()))
        });
        let is_whole = is_there
            && io::read_to_string(&held).is_ok_and(|text| text.trim_end() == fingerprint.whole())
            && programs.iter().all(|program| is_program(&path.join(program)));
        Ok(is_whole.then(|| Bundle { path, fingerprint: fingerprint.clone(), _held: held }))
    }

    /// The stamp of what may be a bundle.
    pub(super) fn stamp(&self, path: &Path) -> Result<Option<File>, CacheError> {
        let stamp = path.join(STAMP);
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&stamp);
        match open {
            Ok(file) => Ok(Some(file)),
            Err(fault) if is_none(&fault) => Ok(None),
            Err(fault) => Err(at("open", &stamp)(fault)),
        }
    }

    /// A new and empty folder for the programs of a bundle; for whoever has the turn. Blocks.
    pub(super) fn stage(&self, fingerprint: &Fingerprint) -> Result<PathBuf, CacheError> {
        let path = self.staged(fingerprint.short());
        remove(&path)?;
        fs::create_dir(&path).map_err(at("make", &path))?;
        Ok(path)
    }

    /// Puts what was staged into its place, and says last that it is whole. Blocks.
    pub(super) fn complete(&self, fingerprint: &Fingerprint) -> Result<(), CacheError> {
        let (staged, path) = (self.staged(fingerprint.short()), self.place(fingerprint.short()));
        fs::set_permissions(&staged, Permissions::from_mode(0o755)).map_err(at("set the mode of", &staged))?;
        folder::settle(&staged).map_err(at("sync", &staged))?;
        self.take_out(fingerprint.short())?;
        fs::rename(&staged, &path).map_err(at("rename to", &path))?;
        folder::settle(&self.root).map_err(at("sync", &self.root))?;
        let stamp = path.join(STAMP);
        let text = format!("{}\n", fingerprint.whole());
        kit::durable::replace(&stamp, 0o644, text.as_bytes()).map_err(at("write", &stamp))
    }

    /// Removes whatever is at the place of a bundle, so that it is there whole or not at all.
    pub(super) fn take_out(&self, name: &str) -> Result<(), CacheError> {
        let (path, out) = (self.place(name), self.root.join(format!(".gone-{name}")));
        remove(&out)?;
        folder::gone(fs::rename(&path, &out)).map_err(at("take out", &path))?;
        remove(&out)
    }

    /// Where the bundle of this name is.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where the whole output of a build that fails is kept.
    #[must_use]
    pub fn log(&self, fingerprint: &Fingerprint) -> PathBuf {
        self.root.join(format!("{}.log", fingerprint.short()))
    }
}

/// Removes a file or a folder with all that is in it; what a link leads to stays.
pub(super) fn remove(path: &Path) -> Result<(), CacheError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(fault) => Err(fault),
    };
    folder::gone(removed).map_err(at("remove", path))
}

pub(super) fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> CacheError + 'a {
    move |source| CacheError { what, path: path.to_owned(), source }
}

fn is_program(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether there is nothing that could be a stamp: no file, or no folder for it, or a link.
fn is_none(fault: &io::Error) -> bool {
    matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || fault.raw_os_error() == Some(libc::ELOOP)
}

/// The original's name for it.
pub(super) const STAMP: &str = ".complete";

#[cfg(test)]
mod tests;
