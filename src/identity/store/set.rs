//! The credentials of one reading of the file, ready to be looked up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use crate::identity::reach::Reach;
use crate::identity::{Catalogue, CredentialId};

use super::format::Document;
use super::token::id_of_clear;
use crate::store::{Digest, View};

pub(super) struct Set {
    /// Found by half of the digest, compared by the whole of it.
    entries: HashMap<[u8; 16], Entry>,
    /// When each ends by itself.
    ends: HashMap<(CredentialId, Tenant), Option<Duration>>,
}

#[derive(Clone)]
pub(super) struct Entry {
    digest: Digest,
    pub(super) id: CredentialId,
    pub(super) tenant: Tenant,
    pub(super) grant: Grant,
    /// When it ends by itself, since the Unix epoch.
    pub(super) expires: Option<Duration>,
    pub(super) reach: Arc<Reach>,
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

    /// When this one ends by itself; none where there is no such credential.
    pub(super) fn end_of(&self, id: &CredentialId, tenant: &Tenant) -> Option<Option<Duration>> {
        self.ends.get(&(id.clone(), tenant.clone())).copied()
    }
}

impl Entry {
    pub(super) fn is_over(&self, now: Duration) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
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
                    reach: Arc::new(hashed.reach()),
                    digest: hashed.hash,
                    id,
                    tenant: hashed.tenant,
                    grant: Grant::Catalogue(hashed.catalogue),
                    expires: hashed.expires.map(Duration::from_secs),
                };
                credentials.into_iter().map(entry).collect()
            }
            Document::Clear(tokens) => {
                let entry = |(token, clear): (String, super::format::Clear)| Entry {
                    digest: Digest::of(&token),
                    id: id_of_clear(&token),
                    tenant: clear.tenant,
                    grant: Grant::Backend(clear.backend),
                    expires: None,
                    reach: Arc::default(),
                };
                tokens.into_iter().map(entry).collect()
            }
        };
        let ends = entries.iter().map(|entry| ((entry.id.clone(), entry.tenant.clone()), entry.expires)).collect();
        let entries: HashMap<_, _> = entries.into_iter().map(|entry| (entry.digest.half(), entry)).collect();
        Self { entries, ends }
    }
}
