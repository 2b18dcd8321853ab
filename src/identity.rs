//! Who is calling: the tenant, what it reaches, and by which credential.
//!
//! A [`Principal`] exists only because a live credential was presented; its fields are private, so no stage can make
//! one up.

pub mod reach;
pub mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;
use reach::Reach;

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    tenant: Tenant,
    catalogue: Catalogue,
    credential: CredentialId,
    reach: Arc<Reach>,
    pass: Option<Pass>,
}

/// A token that ends by itself, shown in the place of a credential. What outlasts the request ends with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Of a login here, which can be taken back before.
    Login { token: Digest, ends: Duration },
    /// Of another server. Both end then, since the Unix epoch.
    Elsewhere { ends: Duration },
}

/// What a tenant reaches: one catalogue, never a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Catalogue {
    Sandbox,
    Native,
}

/// The public part of a credential, which may stand in a log; the secret part may not.
///
/// 1 to 64 of `A-Z a-z 0-9 -`, not beginning with `-`: it can stand in a log line and on a command line as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialId(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a credential's id is 1 to {MOST_ID_BYTES} letters, digits and `-`, not beginning with `-`")]
pub struct NotAnId;

impl Principal {
    pub(crate) fn new(tenant: Tenant, catalogue: Catalogue, credential: CredentialId) -> Self {
        Self { tenant, catalogue, credential, reach: Arc::default(), pass: None }
    }

    /// The same with these bounds.
    pub(crate) fn within(self, reach: Arc<Reach>) -> Self {
        Self { reach, ..self }
    }

    /// The same by way of this token.
    pub(crate) fn by(self, pass: Pass) -> Self {
        Self { pass: Some(pass), ..self }
    }

    /// None where it is the credential itself that was shown.
    #[must_use]
    pub fn pass(&self) -> Option<&Pass> {
        self.pass.as_ref()
    }

    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// What of that it may use.
    #[must_use]
    pub fn reach(&self) -> &Arc<Reach> {
        &self.reach
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

    /// An id as it stands in a store or on a command line.
    ///
    /// # Errors
    /// When it could not stand in a log line as it is.
    pub fn parse(id: &str) -> Result<Self, NotAnId> {
        let spelled = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if spelled && (1..=MOST_ID_BYTES).contains(&id.len()) && !id.starts_with('-') {
            Ok(Self(id.to_owned()))
        } else {
            Err(NotAnId)
        }
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

impl TryFrom<String> for CredentialId {
    type Error = NotAnId;

    fn try_from(id: String) -> Result<Self, NotAnId> {
        Self::parse(&id)
    }
}

impl From<CredentialId> for String {
    fn from(id: CredentialId) -> Self {
        id.0
    }
}

const MOST_ID_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::CredentialId;

    #[test]
    fn an_id_can_stand_in_a_log_line_and_on_a_command_line() {
        for good in ["a", "clear-0f", &"x".repeat(64)] {
            assert!(CredentialId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "a b", "a\nb", "a_b", "é", &"x".repeat(65)] {
            assert!(CredentialId::parse(bad).is_err(), "{bad}");
        }
    }
}
