//! The writing side of the store, for the command line.
//!
//! Every change takes the lock, reads the file again, changes it and replaces it whole, so parallel commands lose
//! nothing. All of it blocks; a caller on a runtime goes through `spawn_blocking`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::{Secret, Tenant};

use crate::identity::{Catalogue, CredentialId};

use super::fault::LedgerError;
use super::format::{Clear, Document, Hashed};
use super::token::{Fresh, id_of_clear};
use crate::store::{Digest, Loose, Step, Warning, Writer};

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
}

/// A credential that is in the store, on the disk.
#[derive(Debug)]
pub struct Minted {
    pub id: CredentialId,
    pub token: Secret,
    pub warnings: Vec<Warning>,
}

/// A credential without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: CredentialId,
    pub tenant: Tenant,
    /// What it reaches; none where the store is the original's and the server decides.
    pub catalogue: Option<Catalogue>,
    /// The backend it is for, where the store is the original's.
    pub backend: Option<String>,
    /// When it was made, since the Unix epoch; the original does not say.
    pub created: Option<Duration>,
    pub name: Option<String>,
}

/// What an upgrade found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgraded {
    /// So many tokens are now hashes; each still opens what it opened.
    Hashed(usize),
    Already,
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
    /// When the store cannot be read, locked or replaced; then it is as it was, except after [`crate::store::ChangeError::Unsure`].
    pub fn mint(&self, wanted: &NewCredential) -> Result<Minted, LedgerError> {
        self.mint_watched(wanted, &mut |_| Ok(()))
    }

    fn mint_watched(
        &self,
        wanted: &NewCredential,
        before: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<Minted, LedgerError> {
        check_name(wanted.name.as_deref())?;
        self.0.change_watched(before, |found| {
            let fresh = unused(&found.document)?;
            match &mut found.document {
                Document::Hashed(credentials) => {
                    let hashed = Hashed {
                        tenant: wanted.tenant.clone(),
                        catalogue: wanted.catalogue,
                        hash: Digest::of(fresh.token.expose()),
                        created: kit::clock::since_epoch().as_secs(),
                        name: wanted.name.clone(),
                    };
                    credentials.insert(fresh.id.clone(), hashed);
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
        let removed = self.remove(|found, _| found == id)?;
        if removed.is_empty() { Err(LedgerError::NoSuchCredential(id.clone())) } else { Ok(()) }
    }

    /// Removes every credential of a tenant, and says which those were: none is no fault.
    ///
    /// # Errors
    /// As [`Ledger::mint`].
    pub fn remove_tenant(&self, tenant: &Tenant) -> Result<Vec<CredentialId>, LedgerError> {
        self.remove(|_, found| found == tenant)
    }

    fn remove(&self, goes: impl Fn(&CredentialId, &Tenant) -> bool) -> Result<Vec<CredentialId>, LedgerError> {
        let mut removed = Vec::new();
        self.0.change(|found| {
            match &mut found.document {
                Document::Hashed(credentials) => credentials.retain(|id, hashed| {
                    let stays = !goes(id, &hashed.tenant);
                    if !stays {
                        removed.push(id.clone());
                    }
                    stays
                }),
                Document::Clear(tokens) => tokens.retain(|token, clear| {
                    let id = id_of_clear(token);
                    let stays = !goes(&id, &clear.tenant);
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

    /// Replaces the tokens of an original's store with their hashes; every token goes on working.
    ///
    /// # Errors
    /// When one of them is for another backend, since hashes carry none and it would begin to work; or as
    /// [`Ledger::mint`].
    pub fn upgrade(&self, backend: &str, catalogue: impl Fn(&Tenant) -> Catalogue) -> Result<Upgraded, LedgerError> {
        let created = kit::clock::since_epoch().as_secs();
        self.0.change(|found| {
            let Document::Clear(tokens) = &found.document else { return Ok(Upgraded::Already) };
            if let Some(other) = tokens.values().find(|clear| clear.backend != backend) {
                return Err(LedgerError::OtherBackend { tenant: other.tenant.clone(), backend: other.backend.clone() });
            }
            // The ids stay, so that open streams outlive the upgrade.
            let hashed: BTreeMap<_, _> = tokens
                .iter()
                .map(|(token, clear)| {
                    let hashed = Hashed {
                        tenant: clear.tenant.clone(),
                        catalogue: catalogue(&clear.tenant),
                        hash: Digest::of(token),
                        created,
                        name: None,
                    };
                    (id_of_clear(token), hashed)
                })
                .collect();
            let count = hashed.len();
            found.document = Document::Hashed(hashed);
            Ok(Upgraded::Hashed(count))
        })
    }
}

impl From<(CredentialId, Hashed)> for Listed {
    fn from((id, hashed): (CredentialId, Hashed)) -> Self {
        Self {
            id,
            tenant: hashed.tenant,
            catalogue: Some(hashed.catalogue),
            backend: None,
            created: Some(Duration::from_secs(hashed.created)),
            name: hashed.name,
        }
    }
}

impl From<(String, Clear)> for Listed {
    fn from((token, clear): (String, Clear)) -> Self {
        Self {
            id: id_of_clear(&token),
            tenant: clear.tenant,
            catalogue: None,
            backend: Some(clear.backend),
            created: None,
            name: None,
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
