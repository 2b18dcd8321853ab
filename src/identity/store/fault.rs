//! What can go wrong with a store, for the one who reads it and the one who writes it.

use std::io;
use std::path::PathBuf;

use kit::Tenant;

use crate::identity::CredentialId;

use super::format::FormatError;
use super::reading::ReadError;
use super::token::NoRandomness;

/// The credential store cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the credential store {} cannot be used", path.display())]
    Unreadable { path: PathBuf, source: ReadError },
    #[error("the credential store {} was not opened within {} s", path.display(), within.as_secs())]
    Late { path: PathBuf, within: std::time::Duration },
    #[error("the reading of the credential store {} broke off", path.display())]
    BrokeOff { path: PathBuf },
}

/// A change of the credential store was not made, unless it is [`LedgerError::Unsure`].
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the credential store {} cannot be used", path.display())]
    Unreadable { path: PathBuf, source: ReadError },
    #[error("the credential store {} cannot hold that", path.display())]
    Unwritable { path: PathBuf, source: FormatError },
    #[error("{what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is in place, but perhaps not yet on the disk", path.display())]
    Unsure { path: PathBuf, source: io::Error },
    #[error("{} belongs to user {owner}; only that user or root can replace it", path.display())]
    NotOwner { path: PathBuf, owner: u32, source: io::Error },
    #[error("another command has held {} for {} s", path.display(), waited.as_secs())]
    Busy { path: PathBuf, waited: std::time::Duration },
    #[error("no credential has the id `{0}`")]
    NoSuchCredential(CredentialId),
    #[error("a credential of `{tenant}` is for the backend `{backend}`; remove it or upgrade with that backend")]
    OtherBackend { tenant: Tenant, backend: String },
    #[error("a credential's name is 1 to {most} characters without control characters")]
    BadName { most: usize },
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}
