//! What is wrong with a worker's entry, and how it is made right.

use std::path::{Path, PathBuf};

use kit::{Tenant, TenantError};

use super::super::address::{Loopback, NotLoopback};
use super::super::endpoint::NotEndpoint;
use super::super::token_file::TokenFault;
use crate::nearest;

/// Each says what is wrong, and behind a semicolon what to do.
#[derive(Debug, thiserror::Error)]
pub enum EntryFault {
    #[error(
        "this is no worker; each is a table such as {{\"tenant\":\"alice\",\"address\":\"127.0.0.1:8401\",\"token_file\":\"alice.key\"}}"
    )]
    NotAWorker,
    #[error("unknown member `{name}`; {hint}")]
    Unknown { name: String, hint: String },
    #[error("`{0}` stands twice; leave one of them out")]
    Twice(String),
    #[error("`{0}` is missing; every worker has `tenant`, `address` and `token_file`")]
    Absent(&'static str),
    #[error("`{name}` is of another kind; {wanted} is wanted")]
    Kind { name: &'static str, wanted: &'static str },
    #[error("{0}; write the label that stands in the tenant's credential")]
    Tenant(TenantError),
    #[error("tenant `{0}` has two workers; leave one of them out")]
    TenantTwice(Tenant),
    #[error("{0}; write where the worker listens on this machine, such as 127.0.0.1:8401")]
    Address(NotLoopback),
    #[error("address `{0}` is that of two workers; give each tenant a worker of its own")]
    AddressTwice(Loopback),
    #[error("{0}")]
    Path(NotEndpoint),
    #[error("`{0}` is no kind of bridge; write refuse or modern")]
    Bridge(String),
    #[error("this is no name; use 1 to 64 of A-Z a-z 0-9 - _ . and begin with a letter or a digit")]
    Name,
    #[error("name `{0}` is that of two workers; logs and metrics could not tell them apart: choose another")]
    NameTwice(String),
    #[error("`{name}` is out of bounds; {bounds} is wanted")]
    Limit { name: &'static str, bounds: String },
    #[error("no token file is named; write the path of the file with the worker's token")]
    NoTokenFile,
    #[error("token file {}: {fault}", path.display())]
    Token { path: PathBuf, fault: TokenFault },
}

/// A fault, and where in the text it is.
#[derive(Debug)]
pub struct Found {
    pub at: usize,
    pub fault: EntryFault,
}

/// A fault, and where a person finds it: line and column are counted from one.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}:{column}: {fault}", file.display())]
pub struct Placed {
    file: PathBuf,
    line: usize,
    column: usize,
    fault: EntryFault,
}

impl EntryFault {
    pub(super) fn unknown(name: &str, known: &[&'static str]) -> Self {
        Self::Unknown { hint: nearest::hint(name, known), name: name.chars().take(MOST_SHOWN).collect() }
    }
}

impl Placed {
    pub(crate) fn new(file: &Path, text: &str, Found { at, fault }: Found) -> Self {
        Self::at(file, place(text, at), fault)
    }

    pub(crate) fn at(file: &Path, (line, column): (usize, usize), fault: EntryFault) -> Self {
        Self { file: file.to_owned(), line, column, fault }
    }
}

/// Line and column, counted from one.
pub(crate) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let last = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, last.chars().count() + 1)
}

/// Of a name that nobody knows.
const MOST_SHOWN: usize = 64;
