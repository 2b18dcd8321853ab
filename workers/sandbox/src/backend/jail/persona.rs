//! The person that a tenant's sandbox appears as in the shared pile.

use data_encoding::HEXLOWER;
use kit::Tenant;
use sha2::{Digest, Sha256};

use super::fault::JailFault;

/// The assistant of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    pub label: String,
    /// 32 hex digits that follow from the tenant's label alone.
    pub id: String,
}

impl Persona {
    /// # Errors
    /// When the label is too long for a person's name, or would not come back from one.
    pub fn of(tenant: &Tenant) -> Result<Self, JailFault> {
        let text = tenant.as_str();
        if text.len() > MOST_TENANT || text.trim() != text {
            return Err(JailFault::Persona(tenant.clone()));
        }
        let digest =
            HEXLOWER.encode(&Sha256::new().chain_update(DOMAIN).chain_update([0]).chain_update(text).finalize());
        let id = digest.get(digest.len() - ID..).unwrap_or_default().to_owned();
        Ok(Self { label: format!("{text}{SUFFIX}"), id })
    }
}

const DOMAIN: &str = "playground/tenant-assistant/v1";
const SUFFIX: &str = " assistant";
const ID: usize = 32;

/// A person's name has at most 32 bytes.
const MOST_TENANT: usize = 32 - SUFFIX.len();

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::Persona;

    #[test]
    fn a_persona_is_the_one_that_the_original_derives() {
        let persona = Persona::of(&Tenant::parse("alice").unwrap()).unwrap();
        assert_eq!((&*persona.label, &*persona.id), ("alice assistant", "25c147ed19fde75186fef26c7217f5db"));
    }

    #[test]
    fn a_label_has_22_bytes_at_most_and_no_blank_around_it() {
        let made = |label: &str| Persona::of(&Tenant::parse(label).unwrap()).is_ok();
        assert!(made(&"x".repeat(22)));
        assert!(!made(&"x".repeat(23)));
        assert!(!made(" a") && !made("a "));
    }
}
