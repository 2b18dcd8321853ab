//! What things of a tenant are called on the host: its jail and its dataset.
//!
//! The names are the original's, so that boxes that it made are found again. The digest keeps labels apart that look
//! alike once they are made safe; it alone decides whose a name is.

use std::fmt;

use data_encoding::HEXLOWER;
use kit::Tenant;
use sha2::{Digest, Sha256};

use super::text::{Dataset, Prefix};

/// The name of a tenant's jail; by it clients hold the sandbox too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JailName(String);

impl JailName {
    /// What a tenant's jail is called.
    #[must_use]
    pub fn of(prefix: &Prefix, tenant: &Tenant) -> Self {
        let safe: String = tenant.as_str().chars().map(safe).take(MOST_SAFE).collect();
        Self(format!("{prefix}-{safe}-{}", digest(tenant)))
    }

    /// A name found on the host, if it is one of this prefix. Whose it is, is not said by that.
    pub(super) fn found(prefix: &Prefix, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(prefix.as_str())?.strip_prefix('-')?;
        let is_safe = !rest.is_empty() && rest.chars().all(|letter| safe(letter) == letter);
        is_safe.then(|| Self(name.to_owned()))
    }

    /// Whether it is this tenant's: the label's digest is what counts, whatever stands before it.
    pub(super) fn is_of(&self, prefix: &Prefix, tenant: &Tenant) -> bool {
        let rest = self.0.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.ends_with(&format!("-{}", digest(tenant))))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the jail's files lie.
    pub(super) fn dataset(&self, parent: &Dataset) -> Dataset {
        parent.child(&self.0)
    }
}

impl fmt::Display for JailName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn safe(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' || letter == '_' { letter } else { '-' }
}

fn digest(tenant: &Tenant) -> String {
    HEXLOWER.encode(&Sha256::digest(tenant.as_str().as_bytes()))
}

/// Of the label, for people who read `jls`.
const MOST_SAFE: usize = 32;

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::{JailName, Prefix};

    fn name(label: &str) -> String {
        JailName::of(&Prefix::default(), &Tenant::parse(label).unwrap()).to_string()
    }

    #[test]
    fn a_jail_is_called_by_prefix_label_and_digest() {
        let digest = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
        assert_eq!(name("alice"), format!("playground-alice-{digest}"));
    }

    #[test]
    fn labels_that_look_alike_have_different_names() {
        assert_ne!(name("a.b"), name("a b"));
        assert!(name("a.b").starts_with("playground-a-b-"));
        assert_eq!(name(&"x".repeat(200)).len(), "playground-".len() + 32 + 1 + 64);
    }

    #[test]
    fn a_name_is_that_tenants_whose_digest_it_ends_with() {
        let (prefix, alice) = (Prefix::default(), Tenant::parse("alice").unwrap());
        let found = |text: &str| JailName::found(&prefix, text).is_some_and(|name| name.is_of(&prefix, &alice));
        assert!(found(&name("alice")));
        assert!(found(&name("alice").replace("-alice-", "-al-")), "an older spelling of the label");
        assert!(!found(&name("bob")));
        assert!(!found(&name("alice").replace("playground-", "other-")));
        assert!(!found(&format!("{}x", name("alice"))));
    }

    #[test]
    fn names_of_another_prefix_or_with_other_letters_are_none_of_ours() {
        let prefix = Prefix::default();
        for text in ["playground", "playground-", "play-alice", "playground-a/b", "playground-a@b", "playground-a b"] {
            assert!(JailName::found(&prefix, text).is_none(), "{text}");
        }
    }
}
