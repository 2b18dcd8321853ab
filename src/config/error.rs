//! What is wrong with `playground.toml`, and where.

use std::io;
use std::path::{Path, PathBuf};

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
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("unknown key `{key}`; {}", hint(nearest.as_deref(), known))]
    UnknownKey { key: String, nearest: Option<String>, known: Vec<String> },
    #[error("{0}")]
    Malformed(String),
}

impl FileError {
    pub(super) fn new(file: &Path, fault: FileFault) -> Self {
        Self { file: file.to_owned(), place: None, fault }
    }

    pub(super) fn malformed(file: &Path, text: &str, fault: &toml::de::Error) -> Self {
        let place = fault.span().map(|span| place(text, span.start));
        Self { file: file.to_owned(), place, fault: FileFault::of(fault.message()) }
    }

    #[must_use]
    pub fn fault(&self) -> &FileFault {
        &self.fault
    }
}

impl FileFault {
    fn of(message: &str) -> Self {
        if !message.starts_with("unknown field ") {
            return Self::Malformed(message.to_owned());
        }
        // Names stand between backticks: the unknown one, and then each that is known.
        let mut names = message.split('`').skip(1).step_by(2).map(str::to_owned);
        let key = names.next().unwrap_or_default();
        let known: Vec<_> = names.collect();
        let nearest = known.iter().min_by_key(|name| distance(&key, name));
        let nearest = nearest.filter(|name| distance(&key, name) <= MOST_TYPOS).cloned();
        Self::UnknownKey { key, nearest, known }
    }
}

fn hint(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are `{}`", known.join("`, `")),
    }
}

/// Line and column, counted from one.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let last = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, last.chars().count() + 1)
}

/// How many characters are to be put in, taken out or replaced to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, a) in one.chars().enumerate() {
        let mut next = vec![above + 1];
        for ((b, cost), insert) in other.iter().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or_default();
            next.push((cost + usize::from(a != *b)).min(insert + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// More than this is another word.
const MOST_TYPOS: usize = 3;
