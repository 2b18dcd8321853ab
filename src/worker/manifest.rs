//! The list of native workers, in the format that the original reads.
//!
//! `{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"}]}`, strictly: unknown members
//! are refused at both levels, tenants and addresses are distinct. What the original does not know may be added to an
//! entry: `path` for a worker that is not at `/`, `name` for logs, `bridge` for one that knows only sessions and is to
//! have clients of the modern era too, `shared_catalogue` for one whose lists are the same for everybody, and `limits`.
//!
//! Everything that is wrong is told at once, each fault with its place and what to do.

pub mod edit;

use std::io;
use std::path::{Path, PathBuf};

use kit::Secret;

use super::entry::{Dialect, Entries, Entry, EntryFault, Found, Node, Placed, Value};
use super::token_file::{self, TokenFault};
use crate::manager::credential;
use crate::regular::{self, NotOpened};

/// A manifest whose token files have been read.
#[derive(Debug)]
pub struct Manifest {
    pub workers: Vec<(Entry, Secret)>,
}

/// One thing that is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestFault {
    #[error("{}: it cannot be read; let the user that starts the service read it", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("{}: it is {kind} and no regular file; name the list of workers itself", file.display())]
    NotRegular { file: PathBuf, kind: &'static str },
    #[error("{}: it is larger than {MOST_BYTES} bytes; it must hold the list of workers alone", .0.display())]
    TooLarge(PathBuf),
    #[error("{}:{line}:{column}: {what}; it is a JSON text such as {{\"workers\":[...]}}", file.display())]
    Malformed { file: PathBuf, line: usize, column: usize, what: String },
    #[error("{}:1:1: it lists {count} workers; 1 to {MOST_WORKERS} are allowed", file.display())]
    Count { file: PathBuf, count: usize },
    #[error(transparent)]
    Entry(#[from] Placed),
    #[error("{}: {more} more faults are not shown; mend these first", file.display())]
    More { file: PathBuf, more: usize },
}

/// Reads a manifest and every token file it names; blocking.
///
/// # Errors
/// Every fault, in the order of the text; at least one.
pub fn load(file: &Path) -> Result<Manifest, Vec<ManifestFault>> {
    parse(file, &text(file)?, token_file::read)
}

/// Its text; blocking.
///
/// # Errors
/// When it cannot be read or is too large.
pub fn text(file: &Path) -> Result<String, Vec<ManifestFault>> {
    match regular::text(file, MOST_BYTES) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(vec![ManifestFault::TooLarge(file.to_owned())]),
        Err(NotOpened::NotRegular(kind)) => Err(vec![ManifestFault::NotRegular { file: file.to_owned(), kind }]),
        Err(fault @ (NotOpened::Io(_) | NotOpened::NotHanded(_))) => {
            Err(vec![ManifestFault::Unreadable(file.to_owned(), fault.into())])
        }
    }
}

/// Parses the text of a manifest, asking `read` for each token.
fn parse(
    file: &Path,
    text: &str,
    read: impl Fn(&Path) -> Result<Secret, TokenFault>,
) -> Result<Manifest, Vec<ManifestFault>> {
    let (entries, mut faults) = entries(file, text)?;
    let mut workers = Vec::with_capacity(entries.len());
    for (entry, named) in entries {
        let token = named.and_then(|(at, path)| {
            let had = |fault| faults.push(Found { at, fault: EntryFault::Token { path: path.clone(), fault } });
            read(&path).map_err(had).ok()
        });
        workers.extend(entry.zip(token));
    }
    if faults.is_empty() { Ok(Manifest { workers }) } else { Err(placed(file, text, faults)) }
}

/// What a text lists, whether or not its token files are there.
///
/// # Errors
/// As [`load`].
pub fn listed(file: &Path, text: &str) -> Result<Vec<Entry>, Vec<ManifestFault>> {
    let (entries, faults) = entries(file, text)?;
    if faults.is_empty() {
        Ok(entries.into_iter().filter_map(|row| row.0).collect())
    } else {
        Err(placed(file, text, faults))
    }
}

/// An entry if it is without faults, and its token file wherever one is named.
type Row = (Option<Entry>, Option<(usize, PathBuf)>);

/// Every entry, and what is wrong with them so far. What is wrong with the list itself leaves nothing to look at.
fn entries(file: &Path, text: &str) -> Result<(Vec<Row>, Vec<Found>), Vec<ManifestFault>> {
    let whole = Node::of_json(text).map_err(|fault| {
        // The place stands before, and once is enough.
        let what = fault.to_string();
        let what = what.split(" at line ").next().unwrap_or_default().to_owned();
        vec![ManifestFault::Malformed { file: file.to_owned(), line: fault.line(), column: fault.column(), what }]
    })?;
    let malformed = |what: &str| {
        vec![ManifestFault::Malformed { file: file.to_owned(), line: 1, column: 1, what: what.to_owned() }]
    };
    let Value::Table(members) = &whole.value else { return Err(malformed("this is no object")) };
    let mut reader = Entries::new(Dialect::Json);
    reader.names(members, &["workers"]);
    let Some(member) = members.iter().find(|member| member.name == "workers") else {
        let mut faults = placed(file, text, reader.faults);
        faults.extend(malformed("`workers` is missing"));
        return Err(faults);
    };
    let Value::List(list) = &member.node.value else { return Err(malformed("`workers` is no list")) };
    if list.is_empty() || list.len() > MOST_WORKERS {
        return Err(vec![ManifestFault::Count { file: file.to_owned(), count: list.len() }]);
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut rows = Vec::with_capacity(list.len());
    for node in list {
        let entry =
            reader.read(node).map(|entry| Entry { token_file: credential::place(folder, &entry.token_file), ..entry });
        rows.push((entry, token_file(node).map(|(at, name)| (at, credential::place(folder, Path::new(name))))));
    }
    Ok((rows, reader.faults))
}

/// Where the token file of an entry is named, and how.
fn token_file(node: &Node) -> Option<(usize, &str)> {
    let Value::Table(members) = &node.value else { return None };
    let named = &members.iter().find(|member| member.name == "token_file")?.node;
    if let Value::Text(name) = &named.value {
        Some((named.at, name.as_str())).filter(|_| !name.is_empty())
    } else {
        None
    }
}

fn placed(file: &Path, text: &str, mut faults: Vec<Found>) -> Vec<ManifestFault> {
    faults.sort_by_key(|found| found.at);
    let more = faults.len().saturating_sub(MOST_TOLD);
    faults.truncate(MOST_TOLD);
    let mut told: Vec<_> = faults.into_iter().map(|found| Placed::new(file, text, found).into()).collect();
    if more > 0 {
        told.push(ManifestFault::More { file: file.to_owned(), more });
    }
    told
}

/// The token files that a manifest names, as far as it can be read at all; blocking.
#[must_use]
pub fn token_files(file: &Path) -> Vec<PathBuf> {
    let text = regular::text(file, MOST_BYTES).ok().flatten().unwrap_or_default();
    let rows = entries(file, &text).map(|(rows, _)| rows).unwrap_or_default();
    rows.into_iter().filter_map(|(_, named)| Some(named?.1)).collect()
}

/// The original's bounds.
const MOST_BYTES: usize = 1024 * 1024;
const MOST_WORKERS: usize = 1024;

/// More would hide the first from sight.
const MOST_TOLD: usize = 100;

#[cfg(test)]
mod tests;
