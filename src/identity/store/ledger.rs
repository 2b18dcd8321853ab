//! The writing side of the store, for the command line.
//!
//! Every change takes the lock, reads the file again, changes it and replaces it whole, so parallel commands lose
//! nothing. All of it blocks; a caller on a runtime goes through `spawn_blocking`.

mod listed;
mod rotate;
mod upgrade;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::{Secret, Tenant};

use crate::identity::reach::Reach;
use crate::identity::{Catalogue, CredentialId};

use super::fault::LedgerError;
use super::format::{Clear, Document, Hashed};
use super::token::{Fresh, id_of_clear};
use crate::store::{Digest, Loose, Step, Warning, Writer};

pub use listed::Listed;
pub use rotate::{Old, Rotated, Rotation};
pub use upgrade::Upgraded;

/// A store that credentials are written to.
#[derive(Clone, Debug)]
pub struct Ledger(Writer<Document>);

/// What is to be minted.
#[derive(Clone, Debug)]
pub struct NewCredential {
    pub tenant: Tenant,
    /// What it reaches, where the store is ours.
    pub catalogue: Catalogue,
    /// What the server's `--backend` says, where the store is the original's.
    pub backend: String,
    /// What its owner calls it.
    pub name: Option<String>,
    /// When it ends by itself, since the Unix epoch, to the second; where the store is ours.
    pub expires: Option<Duration>,
    /// What it may use of that; where the store is ours.
    pub reach: Reach,
}

/// A credential that is in the store, on the disk.
#[derive(Debug)]
pub struct Minted {
    pub id: CredentialId,
    pub token: Secret,
    pub warnings: Vec<Warning>,
}

impl Ledger {
    #[must_use]
    pub fn at(path: impl Into<PathBuf>, loose: Loose) -> Self {
        Self(Writer::at(path, loose))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a credential; when this returns, it is on the disk.
    ///
    /// # Errors
    /// When it is to end by itself and cannot, or when the store cannot be read, locked or replaced; then it is as it was, except after [`crate::store::ChangeError::Unsure`].
    pub fn mint(&self, wanted: &NewCredential) -> Result<Minted, LedgerError> {
        self.mint_watched(wanted, &mut |_| Ok(()))
    }

    fn mint_watched(
        &self,
        wanted: &NewCredential,
        before: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<Minted, LedgerError> {
        check_name(wanted.name.as_deref())?;
        let now = kit::clock::since_epoch();
        if wanted.expires.is_some_and(|expires| expires.as_secs() <= now.as_secs()) {
            return Err(LedgerError::Past);
        }
        self.0.change_watched(before, |found| {
            let fresh = unused(&found.document)?;
            match &mut found.document {
                Document::Hashed(credentials) => {
                    let hashed = Hashed {
                        tenant: wanted.tenant.clone(),
                        catalogue: wanted.catalogue,
                        hash: Digest::of(fresh.token.expose()),
                        created: now.as_secs(),
                        name: wanted.name.clone(),
                        expires: wanted.expires.map(|expires| expires.as_secs()),
                        replaced_by: None,
                        tools: wanted.reach.tools.clone(),
                        scopes: wanted.reach.scopes.clone(),
                    };
                    credentials.insert(fresh.id.clone(), hashed);
                }
                Document::Clear(_) if wanted.expires.is_some() || wanted.reach != Reach::default() => {
                    return Err(LedgerError::Clear);
                }
                Document::Clear(tokens) => {
                    let clear = Clear {
                        tenant: wanted.tenant.clone(),
                        backend: wanted.backend.clone(),
                        other: BTreeMap::new(),
                    };
                    tokens.insert(fresh.token.expose().to_owned(), clear);
                }
            }
            Ok(Minted { id: fresh.id, token: fresh.token, warnings: found.warnings() })
        })
    }

    /// Removes one credential.
    ///
    /// # Errors
    /// When there is none with that id, or as [`Ledger::mint`].
    pub fn revoke(&self, id: &CredentialId) -> Result<(), LedgerError> {
        let removed = self.remove(|found, _, _| found == id)?;
        if removed.is_empty() { Err(LedgerError::NoSuchCredential(id.clone())) } else { Ok(()) }
    }

    /// Removes every credential of a tenant, and says which those were: none is no fault.
    ///
    /// # Errors
    /// As [`Ledger::mint`].
    pub fn remove_tenant(&self, tenant: &Tenant) -> Result<Vec<CredentialId>, LedgerError> {
        self.remove(|_, found, _| found == tenant)
    }

    /// Removes every credential whose time is over, and says which those were.
    ///
    /// # Errors
    /// As [`Ledger::mint`].
    pub fn remove_expired(&self, now: Duration) -> Result<Vec<CredentialId>, LedgerError> {
        self.remove(|_, _, expires| expires.is_some_and(|expires| expires <= now.as_secs()))
    }

    fn remove(
        &self,
        goes: impl Fn(&CredentialId, &Tenant, Option<u64>) -> bool,
    ) -> Result<Vec<CredentialId>, LedgerError> {
        let mut removed = Vec::new();
        self.0.change(|found| {
            match &mut found.document {
                Document::Hashed(credentials) => credentials.retain(|id, hashed| {
                    let stays = !goes(id, &hashed.tenant, hashed.expires);
                    if !stays {
                        removed.push(id.clone());
                    }
                    stays
                }),
                Document::Clear(tokens) => tokens.retain(|token, clear| {
                    let id = id_of_clear(token);
                    let stays = !goes(&id, &clear.tenant, None);
                    if !stays {
                        removed.push(id);
                    }
                    stays
                }),
            }
            Ok::<_, LedgerError>(())
        })?;
        Ok(removed)
    }

    /// Every credential, in the order of their ids.
    ///
    /// # Errors
    /// When the store cannot be read. One that is not there is empty.
    pub fn list(&self) -> Result<Vec<Listed>, LedgerError> {
        let mut listed: Vec<Listed> = match self.0.read()?.document {
            Document::Hashed(credentials) => credentials.into_iter().map(Listed::from).collect(),
            Document::Clear(tokens) => tokens.into_iter().map(Listed::from).collect(),
        };
        listed.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(listed)
    }

    /// What an operator should know about the store.
    ///
    /// # Errors
    /// As [`Ledger::list`].
    pub fn warnings(&self) -> Result<Vec<Warning>, LedgerError> {
        Ok(self.0.read()?.warnings())
    }

    /// The tokens of a tenant, where the store is the original's; ours cannot tell them again, hence none.
    ///
    /// # Errors
    /// As [`Ledger::list`].
    pub fn tokens_in_clear(&self, tenant: &Tenant) -> Result<Option<Vec<Secret>>, LedgerError> {
        match self.0.read()?.document {
            Document::Hashed(_) => Ok(None),
            Document::Clear(tokens) => {
                let theirs = tokens.into_iter().filter(|(_, clear)| clear.tenant == *tenant);
                Ok(Some(theirs.map(|(token, _)| Secret::new(token)).collect()))
            }
        }
    }
}

fn unused(document: &Document) -> Result<Fresh, LedgerError> {
    loop {
        let fresh = Fresh::make()?;
        let taken = match document {
            Document::Hashed(credentials) => credentials.contains_key(&fresh.id),
            Document::Clear(tokens) => tokens.keys().any(|token| id_of_clear(token) == fresh.id),
        };
        if !taken {
            return Ok(fresh);
        }
    }
}

fn check_name(name: Option<&str>) -> Result<(), LedgerError> {
    let fits =
        |name: &str| (1..=MOST_NAME_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    match name {
        Some(name) if !fits(name) => Err(LedgerError::BadName { most: MOST_NAME_CHARS }),
        Some(_) | None => Ok(()),
    }
}

const MOST_NAME_CHARS: usize = 64;

#[cfg(test)]
mod tests;
