//! One reading of a file through an open descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};

use super::Document;
use super::fault::FormatError;
use super::place::Owner;

/// What to make of a store that others than its owner may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loose {
    /// As the original does.
    Warn,
    Refuse,
}

/// What an operator should know about a store that is nevertheless served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("its mode {0:04o} lets others than its owner open it; make it 0600")]
    Loose(u32),
    #[error("it holds {0} tokens in clear; `playground token upgrade` replaces them with hashes")]
    Clear(usize),
    #[error("it holds {0} secrets in clear, as the original writes them; its next change replaces them with hashes")]
    ClearYet(usize),
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("open it")]
    Open(#[source] io::Error),
    #[error("read it")]
    Read(#[source] io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("its mode {0:04o} lets others than its owner open it; make it 0600")]
    Loose(u32),
    #[error("it is being written in place; replace it by a rename instead")]
    Unsettled,
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    linked: bool,
}

pub(super) struct Reading<D> {
    pub(super) document: D,
    pub(super) stamp: Stamp,
    pub(super) loose: Option<Warning>,
    pub(super) owner: Owner,
}

impl Stamp {
    #[expect(clippy::useless_conversion, reason = "the widths of these fields differ between platforms")]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
            modified: (stat.st_mtime.into(), i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
            changed: (stat.st_ctime.into(), i64::try_from(stat.st_ctime_nsec).unwrap_or_default()),
            linked: stat.st_nlink > 0,
        }
    }

    /// Whether the file still has a name, so that a later change of its content would be a change of this file.
    pub(super) fn is_linked(&self) -> bool {
        self.linked
    }

    /// Whether the file changed so short a time before `now` that a second change could bear the same stamp.
    pub(super) fn is_young(&self, now: Duration) -> bool {
        let (seconds, nanos) = self.changed;
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else { return false };
        now.checked_sub(Duration::new(seconds, nanos)).is_some_and(|age| age < TICK)
    }
}

/// Opens a store's file, if there is one.
///
/// A fifo in its place must not hold us up, hence non-blocking; [`read`] refuses it then.
pub(crate) fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

/// Reads the whole file by position: a descriptor that was handed over shares its offset with its sender.
pub(super) fn read<D: Document>(file: &OwnedFd, loose: Loose) -> Result<Reading<D>, ReadError> {
    let file = File::from(file.try_clone().map_err(ReadError::Read)?);
    for _ in 0..MOST_READINGS {
        let before = stat(&file)?;
        if !rustix::fs::FileType::from_raw_mode(before.st_mode).is_file() {
            return Err(ReadError::NotAFile);
        }
        #[expect(clippy::useless_conversion, reason = "this field is narrower on other systems")]
        let mode = u32::from(before.st_mode) & 0o7777;
        let is_loose = mode & 0o077 != 0;
        if is_loose && loose == Loose::Refuse {
            return Err(ReadError::Loose(mode));
        }
        let stamp = Stamp::of(&before);
        if stamp.size > MOST_BYTES {
            return Err(FormatError::TooLarge(stamp.size).into());
        }
        let text = bytes(&file).map_err(ReadError::Read)?;
        let after = Stamp::of(&stat(&file)?);
        // A rename in the meantime takes the file's name and leaves its content: only the content must stand still.
        if (after.size, after.modified) != (stamp.size, stamp.modified) {
            continue;
        }
        let document = D::parse(&text)?;
        let owner = Owner { user: before.st_uid, group: before.st_gid };
        return Ok(Reading { document, stamp, loose: is_loose.then_some(Warning::Loose(mode)), owner });
    }
    Err(ReadError::Unsettled)
}

pub(super) fn stat(file: impl AsFd) -> Result<Stat, ReadError> {
    rustix::fs::fstat(file).map_err(|fault| ReadError::Read(fault.into()))
}

fn bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let at = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let got = match file.read_at(&mut piece, at) {
            Ok(got) => got,
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
            Err(fault) => return Err(fault),
        };
        text.extend(piece.iter().take(got));
        // One that grows while it is read is cut off here and found unsettled above.
        if got == 0 || at > MOST_BYTES {
            return Ok(text);
        }
    }
}

/// The size of some eighty thousand credentials: a bound on what one reload may cost.
pub const MOST_BYTES: u64 = 16 << 20;

/// How often a file that changes under the reader is read again.
const MOST_READINGS: usize = 3;

/// Longer than any kernel's clock tick, by which file times are stamped.
const TICK: Duration = Duration::from_millis(25);
