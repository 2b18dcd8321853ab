//! What is wrong with `playground.toml`, and where.

mod words;

use std::io;
use std::path::{Path, PathBuf};

use crate::nearest;
use crate::worker::entry::{EntryFault, Found, place};

/// A file that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("{}{}", file.display(), place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default())]
pub struct FileError {
    file: PathBuf,
    place: Option<(usize, usize)>,
    #[source]
    fault: FileFault,
}

#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("it is {0} and no regular file; name the playground.toml itself")]
    NotRegular(&'static str),
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("unknown key `{key}`; {hint}")]
    UnknownKey { key: String, hint: String },
    #[error("{0}")]
    Malformed(String),
    #[error(
        "exchanges_per_tenant = {asked} is more than a quarter of exchanges = {exchanges}, and no tenant gets more than that; write at most {most}, or exchanges = {}",
        .asked.saturating_mul(4)
    )]
    Share { asked: usize, exchanges: usize, most: usize },
    #[error(transparent)]
    Entry(EntryFault),
}

impl FileError {
    pub(super) fn new(file: &Path, fault: FileFault) -> Self {
        Self { file: file.to_owned(), place: None, fault }
    }

    pub(super) fn malformed(file: &Path, text: &str, fault: &toml::de::Error) -> Self {
        let place = fault.span().map(|span| place(text, span.start));
        Self { file: file.to_owned(), place, fault: FileFault::of(fault.message()) }
    }

    pub(super) fn placed(file: &Path, place: (usize, usize), fault: FileFault) -> Self {
        Self { file: file.to_owned(), place: Some(place), fault }
    }

    pub(super) fn entry(file: &Path, text: &str, found: Found) -> Self {
        Self { file: file.to_owned(), place: Some(place(text, found.at)), fault: FileFault::Entry(found.fault) }
    }

    #[must_use]
    pub fn fault(&self) -> &FileFault {
        &self.fault
    }
}

impl FileFault {
    fn of(message: &str) -> Self {
        if !message.starts_with("unknown field ") {
            return Self::Malformed(words::plain(message));
        }
        // Names stand between backticks: the unknown one, and then each that is known.
        let mut names = message.split('`').skip(1).step_by(2).map(str::to_owned);
        let key = names.next().unwrap_or_default();
        let known: Vec<_> = names.collect();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        Self::UnknownKey { hint: nearest::hint(&key, &known), key }
    }
}
