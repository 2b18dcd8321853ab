//! Hashes in the place of an original's tokens.

use std::collections::BTreeMap;

use kit::Tenant;

use super::super::fault::LedgerError;
use super::super::format::{Document, Hashed};
use super::super::token::id_of_clear;
use super::Ledger;
use crate::identity::Catalogue;
use crate::store::Digest;

/// What an upgrade found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgraded {
    /// So many tokens are now hashes; each still opens what it opened.
    Hashed(usize),
    Already,
}

impl Ledger {
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
                        expires: None,
                        replaced_by: None,
                        tools: None,
                        scopes: None,
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
