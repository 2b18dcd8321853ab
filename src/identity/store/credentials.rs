//! The reading side of the store, in the running edge: who presented a token.
//!
//! A revocation that is in place before a token is presented is always seen; see [`Watched`]. A credential that ends by
//! itself does so by the wall clock, at its next question.

use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};
use tokio::sync::watch;

use crate::identity::reach::Reach;
use crate::identity::{Catalogue, CredentialId, Principal};
use crate::store::{Loose, Opener, StoreError, View as _, Warning, Watched};

use super::set::{Entry, Grant, Set};

/// The credentials that count now; clones ask the same.
#[derive(Clone)]
pub struct Credentials {
    store: Watched<Set>,
    rule: Arc<ClearRule>,
}

/// What a credential of the original's form is worth, since it does not name its catalogue.
pub struct ClearRule {
    /// The server's `--backend`; a credential for another is refused.
    pub backend: String,
    /// Which catalogue the tenant has on this server.
    pub catalogue: Box<dyn Fn(&Tenant) -> Catalogue + Send + Sync>,
}

/// Who presented a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Known(Principal),
    Unknown,
    /// One whose time is over; its client is told no more than of an unknown one.
    Expired {
        credential: CredentialId,
        tenant: Tenant,
    },
    /// One of another server's that has not all the scopes which every one must have: these.
    LacksScopes {
        credential: CredentialId,
        tenant: Tenant,
        wanted: Vec<String>,
    },
    /// One of the original's form, for another backend than this server's.
    WrongBackend {
        credential: CredentialId,
        tenant: Tenant,
    },
}

/// What is left of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It was revoked, or its time is over.
    Over,
    /// It ends by itself after this, while nobody sets the clock.
    Left(Duration),
    /// It does not end by itself.
    Open,
}

impl Credentials {
    /// Reads the store for the first time; `tasks` owns the later readings.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn load(opener: Opener, rule: ClearRule, loose: Loose, tasks: Tasks) -> Result<Self, StoreError> {
        Ok(Self { store: Watched::load(opener, loose, tasks).await?, rule: Arc::new(rule) })
    }

    /// Says who presented this token.
    pub async fn authenticate(&self, token: &Secret) -> Verdict {
        self.store.refresh().await;
        // An empty token is no token, whatever a store says.
        if token.expose().is_empty() {
            return Verdict::Unknown;
        }
        let now = kit::clock::since_epoch();
        self.store.view().find(token.expose()).map_or(Verdict::Unknown, |entry| self.rule.judge(entry, now))
    }

    /// What a tenant reaches whose credential stands elsewhere, and names no more than a backend.
    #[must_use]
    pub fn reach(&self, tenant: Tenant, backend: Option<&str>, credential: CredentialId, bounds: Reach) -> Verdict {
        if backend.is_some_and(|backend| backend != self.rule.backend) {
            return Verdict::WrongBackend { credential, tenant };
        }
        let catalogue = (self.rule.catalogue)(&tenant);
        Verdict::Known(Principal::new(tenant, catalogue, credential).within(Arc::new(bounds)))
    }

    /// Refreshes for ever, for streams that stay open while nobody presents a token.
    pub async fn keep_fresh(&self, every: Duration) {
        self.store.keep_fresh(every).await;
    }

    /// What is left of the principal's credential, by the set that was read last; cheap, and asks nobody.
    #[must_use]
    pub fn life(&self, principal: &Principal) -> Life {
        match self.store.view().end_of(principal.credential(), principal.tenant()) {
            None => Life::Over,
            Some(None) => Life::Open,
            Some(Some(end)) => match end.saturating_sub(kit::clock::since_epoch()) {
                Duration::ZERO => Life::Over,
                left => Life::Left(left),
            },
        }
    }

    /// Changes whenever another set has been read; a stream then asks [`Credentials::life`].
    #[must_use]
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.store.generations()
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.store.view().count()
    }

    /// What an operator should know about the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        self.store.warnings()
    }
}

impl ClearRule {
    fn judge(&self, entry: &Entry, now: Duration) -> Verdict {
        if entry.is_over(now) {
            return Verdict::Expired { credential: entry.id.clone(), tenant: entry.tenant.clone() };
        }
        let catalogue = match &entry.grant {
            Grant::Catalogue(catalogue) => *catalogue,
            Grant::Backend(backend) if *backend == self.backend => (self.catalogue)(&entry.tenant),
            Grant::Backend(_) => {
                return Verdict::WrongBackend { credential: entry.id.clone(), tenant: entry.tenant.clone() };
            }
        };
        Verdict::Known(
            Principal::new(entry.tenant.clone(), catalogue, entry.id.clone()).within(Arc::clone(&entry.reach)),
        )
    }
}

#[cfg(test)]
mod tests;
