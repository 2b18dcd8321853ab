//! A credential as an operator sees it.

use std::time::Duration;

use kit::Tenant;

use super::super::format::{Clear, Hashed};
use super::super::token::id_of_clear;
use crate::identity::reach::Reach;
use crate::identity::{Catalogue, CredentialId};

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
    /// When it ends by itself, since the Unix epoch.
    pub expires: Option<Duration>,
    /// The one that was minted in its place.
    pub replaced_by: Option<CredentialId>,
    /// What it may use of what it reaches.
    pub reach: Reach,
}

impl Listed {
    /// Whether its time is over.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl From<(CredentialId, Hashed)> for Listed {
    fn from((id, hashed): (CredentialId, Hashed)) -> Self {
        Self {
            id,
            reach: hashed.reach(),
            tenant: hashed.tenant,
            catalogue: Some(hashed.catalogue),
            backend: None,
            created: Some(Duration::from_secs(hashed.created)),
            name: hashed.name,
            expires: hashed.expires.map(Duration::from_secs),
            replaced_by: hashed.replaced_by,
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
            expires: None,
            replaced_by: None,
            reach: Reach::default(),
        }
    }
}
