//! The files of a state, and their turns.
//!
//! `audit.jsonl` is written to; those before it are `audit.N.jsonl`, the newest with the highest number.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::regular;

/// Where a state's record lies, and how many files of it are kept beside the one that is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub keep: usize,
}

/// Which file it is, under whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Folder {
    #[must_use]
    pub fn current(&self) -> PathBuf {
        self.path.join(CURRENT)
    }

    /// The file to write to, and the one before it where this one is empty; blocking.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self) -> io::Result<(File, Option<File>)> {
        let current = regular::appending(&self.current())?;
        let before = match current.metadata()?.len() {
            0 => self.turned()?.last().map(|(_, path)| regular::open(path)).transpose()?,
            _ => None,
        };
        Ok((current, before))
    }

    /// Puts the file aside that was written to, opens a fresh one, and removes those that are too many; blocking.
    ///
    /// # Errors
    /// When it cannot be put aside or the fresh one cannot be made. What cannot be removed stays.
    pub fn turn(&self) -> io::Result<File> {
        let mut turned = self.turned()?;
        let next = turned.last().map_or(0, |(number, _)| *number).saturating_add(1);
        let aside = self.path.join(format!("{PREFIX}{next}{SUFFIX}"));
        fs::rename(self.current(), &aside)?;
        turned.push((next, aside));
        let fresh = regular::appending(&self.current()).map_err(io::Error::from);
        if fresh.is_ok() {
            let surplus = turned.len().saturating_sub(self.keep);
            for (_, path) in turned.into_iter().take(surplus) {
                // The next turn tries again.
                let _ = fs::remove_file(path);
            }
        }
        fresh
    }

    /// All of them, the oldest first; blocking.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<_> = self.turned()?.into_iter().map(|(_, path)| path).collect();
        files.extend(Some(self.current()).filter(|path| path.exists()));
        Ok(files)
    }

    fn turned(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut turned = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            turned.extend(number(&path).map(|number| (number, path)));
        }
        turned.sort();
        Ok(turned)
    }
}

impl Identity {
    /// Blocking.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    /// Whether a path leads to this very file; blocking.
    ///
    /// # Errors
    /// When that cannot be seen. A file that is not there is seen.
    pub fn is_at(self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(found) => Ok(self == Self { device: found.dev(), inode: found.ino() }),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

const CURRENT: &str = "audit.jsonl";
const PREFIX: &str = "audit.";
const SUFFIX: &str = ".jsonl";
