//! The credentials of one reading of the file, ready to be looked up.

use std::collections::{HashMap, HashSet};

use kit::Tenant;

use crate::identity::{Catalogue, CredentialId};

use super::format::Document;
use super::token::id_of_clear;
use crate::store::{Digest, View};

pub(super) struct Set {
    /// Found by half of the digest, compared by the whole of it.
    entries: HashMap<[u8; 16], Entry>,
    live: HashSet<(CredentialId, Tenant)>,
}

#[derive(Clone)]
pub(super) struct Entry {
    digest: Digest,
    pub(super) id: CredentialId,
    pub(super) tenant: Tenant,
    pub(super) grant: Grant,
}

/// What a credential says about what it reaches.
#[derive(Clone)]
pub(super) enum Grant {
    Catalogue(Catalogue),
    /// The original's: the backend it was minted for.
    Backend(String),
}

impl Set {
    pub(super) fn find(&self, token: &str) -> Option<&Entry> {
        let presented = Digest::of(token);
        let found = self.entries.get(&presented.half());
        // A token that is not there takes the same path as one that is.
        let nothing = Digest::of_nothing();
        let stored = found.map_or(&nothing, |entry| &entry.digest);
        if presented.matches(stored) { found } else { None }
    }

    pub(super) fn has(&self, id: &CredentialId, tenant: &Tenant) -> bool {
        self.live.contains(&(id.clone(), tenant.clone()))
    }
}

impl View for Set {
    type Document = Document;

    fn count(&self) -> usize {
        self.entries.len()
    }
}

impl From<Document> for Set {
    fn from(document: Document) -> Self {
        let entries: Vec<Entry> = match document {
            Document::Hashed(credentials) => {
                let entry = |(id, hashed): (CredentialId, super::format::Hashed)| Entry {
                    digest: hashed.hash,
                    id,
                    tenant: hashed.tenant,
                    grant: Grant::Catalogue(hashed.catalogue),
                };
                credentials.into_iter().map(entry).collect()
            }
            Document::Clear(tokens) => {
                let entry = |(token, clear): (String, super::format::Clear)| Entry {
                    digest: Digest::of(&token),
                    id: id_of_clear(&token),
                    tenant: clear.tenant,
                    grant: Grant::Backend(clear.backend),
                };
                tokens.into_iter().map(entry).collect()
            }
        };
        let live = entries.iter().map(|entry| (entry.id.clone(), entry.tenant.clone())).collect();
        let entries: HashMap<_, _> = entries.into_iter().map(|entry| (entry.digest.half(), entry)).collect();
        Self { entries, live }
    }
}
