//! Who is calling: the tenant, what it reaches, and by which credential.
//!
//! A [`Principal`] exists only because a live credential was presented; its fields are private, so no stage can make
//! one up.

use std::fmt;

use kit::Tenant;
use serde::{Deserialize, Serialize};

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    tenant: Tenant,
    catalogue: Catalogue,
    credential: CredentialId,
}

/// What a tenant reaches: one catalogue, never a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Catalogue {
    Sandbox,
    Native,
}

/// The public part of a credential, which may stand in a log; the secret part may not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CredentialId(String);

impl Principal {
    pub(crate) fn new(tenant: Tenant, catalogue: Catalogue, credential: CredentialId) -> Self {
        Self { tenant, catalogue, credential }
    }

    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    #[must_use]
    pub fn credential(&self) -> &CredentialId {
        &self.credential
    }

    /// A principal that no credential stands behind, for tests of the stages after authentication.
    #[cfg(test)]
    pub(crate) fn for_test(tenant: &str, catalogue: Catalogue) -> Self {
        let tenant = Tenant::parse(tenant).expect("a test names a valid tenant");
        Self::new(tenant, catalogue, CredentialId::new("test"))
    }
}

impl CredentialId {
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
