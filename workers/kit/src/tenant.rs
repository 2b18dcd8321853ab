use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The account label that everything is keyed by.
///
/// Any label that the original accepted is one: 1 to 200 bytes without control characters, compared exactly. A tenant
/// that is newly made must also be [portable](Tenant::is_portable), since its label becomes a folder and a host name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tenant(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantError {
    #[error("a tenant's name is empty")]
    Empty,
    #[error("a tenant's name has {0} bytes; at most {MOST_BYTES} are allowed")]
    TooLong(usize),
    #[error("a tenant's name holds a control character")]
    Control,
    #[error("`{0}` is not a name for a new tenant: use 1 to 32 of a-z, 0-9 and `-`, beginning with a letter or digit")]
    NotPortable(String),
}

impl Tenant {
    /// A label as it stands in a store or manifest, possibly one of the original's.
    ///
    /// # Errors
    /// When it is empty, longer than 200 bytes or holds a control character.
    pub fn parse(label: &str) -> Result<Self, TenantError> {
        if label.is_empty() {
            return Err(TenantError::Empty);
        }
        if label.len() > MOST_BYTES {
            return Err(TenantError::TooLong(label.len()));
        }
        if label.chars().any(char::is_control) {
            return Err(TenantError::Control);
        }
        Ok(Self(label.to_owned()))
    }

    /// A label for a tenant that is about to be made.
    ///
    /// # Errors
    /// When it is not `[a-z0-9][a-z0-9-]{0,31}`.
    pub fn parse_new(label: &str) -> Result<Self, TenantError> {
        let tenant = Self::parse(label)?;
        if tenant.is_portable() { Ok(tenant) } else { Err(TenantError::NotPortable(label.to_owned())) }
    }

    /// Whether the label can be a folder, a host name and a command-line argument as it stands.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        self.0.len() <= MOST_PORTABLE_BYTES
            && !self.0.starts_with('-')
            && self.0.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = TenantError;

    fn from_str(label: &str) -> Result<Self, TenantError> {
        Self::parse(label)
    }
}

impl TryFrom<String> for Tenant {
    type Error = TenantError;

    fn try_from(label: String) -> Result<Self, TenantError> {
        Self::parse(&label)
    }
}

impl From<Tenant> for String {
    fn from(tenant: Tenant) -> Self {
        tenant.0
    }
}

/// The original's bound on a label.
const MOST_BYTES: usize = 200;

/// Short enough that a host name made of it stays under 64 bytes.
const MOST_PORTABLE_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::{Tenant, TenantError};

    #[test]
    fn a_new_tenant_has_a_portable_name() {
        for good in ["a", "me", "0", "team-7", &"x".repeat(32)] {
            assert!(Tenant::parse_new(good).is_ok(), "{good}");
        }
        for bad in ["-x", "--help", "..", "a/b", "a b", "A", "ａ", &"x".repeat(33), "a_b"] {
            assert!(matches!(Tenant::parse_new(bad), Err(TenantError::NotPortable(_))), "{bad}");
        }
    }

    #[test]
    fn a_stored_tenant_may_have_any_label_the_original_took() {
        for good in ["Alice Smith", "ａ", &"x".repeat(200)] {
            assert!(Tenant::parse(good).is_ok(), "{good}");
        }
        assert_eq!(Tenant::parse(""), Err(TenantError::Empty));
        assert_eq!(Tenant::parse(&"x".repeat(201)), Err(TenantError::TooLong(201)));
        assert_eq!(Tenant::parse("a\nb"), Err(TenantError::Control));
    }
}
