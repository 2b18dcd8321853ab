//! What can go wrong with a file, for the one who reads it and the one who writes it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::digest::NoRandomness;
use super::reading::{MOST_BYTES, ReadError};

/// The file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the {called} {} cannot be used", path.display())]
    Unreadable { called: &'static str, path: PathBuf, source: ReadError },
    #[error("the {called} {} was not opened within {} s", path.display(), within.as_secs())]
    Late { called: &'static str, path: PathBuf, within: Duration },
    #[error("the reading of the {called} {} broke off", path.display())]
    BrokeOff { called: &'static str, path: PathBuf },
}

/// A change was not made, unless it is [`ChangeError::Unsure`].
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("the {called} {} cannot be used", path.display())]
    Unreadable { called: &'static str, path: PathBuf, source: ReadError },
    #[error("the {called} {} cannot hold that", path.display())]
    Unwritable { called: &'static str, path: PathBuf, source: FormatError },
    #[error("{what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is in place, but perhaps not yet on the disk", path.display())]
    Unsure { path: PathBuf, source: io::Error },
    #[error("{} belongs to user {owner}; only that user or root can replace it", path.display())]
    NotOwner { path: PathBuf, owner: u32, source: io::Error },
    #[error("another command has held {} for {} s", path.display(), waited.as_secs())]
    Busy { path: PathBuf, waited: Duration },
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// Why a file is not what it should be.
///
/// It says where, and never what stands there: that could be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("it ends in the middle, at byte {0}")]
    Torn(usize),
    #[error("it is not JSON, at byte {0}")]
    NotJson(usize),
    #[error("it is JSON but not a {called}, at byte {byte}")]
    Foreign { called: &'static str, byte: usize },
    #[error("it has format version {found}, and this build knows {known} at most; use the newer build that wrote it")]
    Newer { found: u64, known: u64 },
    #[error("it has {0} bytes, more than the {MOST_BYTES} that it may have")]
    TooLarge(u64),
}

impl FormatError {
    /// Where in `text` the reader stopped.
    pub(crate) fn at(called: &'static str, text: &[u8], error: &serde_json::Error) -> Self {
        let before = error.line().saturating_sub(1);
        let lines: usize = text.split_inclusive(|byte| *byte == b'\n').take(before).map(<[u8]>::len).sum();
        let byte = lines + error.column();
        match error.classify() {
            serde_json::error::Category::Eof => Self::Torn(byte),
            serde_json::error::Category::Data => Self::Foreign { called, byte },
            serde_json::error::Category::Io | serde_json::error::Category::Syntax => Self::NotJson(byte),
        }
    }
}
