//! What a tenant's machine is called.

use data_encoding::HEXLOWER;
use kit::Tenant;
use sha2::{Digest, Sha256};

/// A name that only one label leads to: `PREFIX-SAFE-DIGEST`. The original's ends before the digest, so that neither is
/// ever the other's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn of(prefix: &str, tenant: &Tenant) -> Self {
        let mut safe = String::new();
        for sign in tenant.as_str().chars() {
            if safe.len() == MOST_SAFE {
                break;
            }
            if sign.is_ascii_alphanumeric() {
                safe.push(sign.to_ascii_lowercase());
            } else if !safe.is_empty() && !safe.ends_with('-') {
                safe.push('-');
            }
        }
        let safe = safe.trim_end_matches('-');
        let digest = Sha256::digest(tenant.as_str());
        let digest = HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
        let gap = if safe.is_empty() { "" } else { "-" };
        Self(format!("{prefix}-{safe}{gap}{digest}"))
    }

    /// That of the machine in which faculties are built; no label leads to it, since it ends with no digest.
    pub(super) fn builder(prefix: &str) -> Self {
        Self(format!("{prefix}{BUILDER}"))
    }

    /// The same, if it is one.
    pub(super) fn of_builder(name: &str) -> Option<Self> {
        name.strip_suffix(BUILDER).filter(|prefix| is_prefix(prefix)).map(Self::builder)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a machine's name can begin so. Lima's names lead to a socket, whose path macOS bounds to 104 bytes.
pub(super) fn is_prefix(text: &str) -> bool {
    let parts_are_good = |text: &str| {
        text.split(['.', '_', '-'])
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    text.len() <= MOST_PREFIX && parts_are_good(text)
}

/// The original's.
const BUILDER: &str = "-faculties-builder";

const MOST_SAFE: usize = 16;
const DIGEST_BYTES: usize = 8;
const MOST_PREFIX: usize = 20;

#[cfg(test)]
mod tests {
    use kit::Tenant;
    use proptest::prelude::*;

    use super::{Name, is_prefix};

    fn name(label: &str) -> String {
        Name::of("playground-sbx", &Tenant::parse(label).unwrap()).as_str().to_owned()
    }

    #[test]
    fn labels_that_look_alike_have_names_of_their_own() {
        let names = ["a b", "a-b", "a.b", "A-b", "a--b", "a-b-"].map(name);
        for (index, one) in names.iter().enumerate() {
            assert!(one.starts_with("playground-sbx-a-b-"), "{one}");
            assert!(!names[..index].contains(one), "{one}");
        }
        assert_eq!(name("alice"), "playground-sbx-alice-2bd806c97f0e00af");
    }

    #[test]
    fn prefixes_are_what_a_name_can_begin_with() {
        for (text, good) in [
            ("playground-sbx", true),
            ("a", true),
            ("abcdefghijklmnopqrst", true),
            ("abcdefghijklmnopqrstu", false),
            ("", false),
            ("-a", false),
            ("a--b", false),
            ("a b", false),
            ("a/b", false),
        ] {
            assert_eq!(is_prefix(text), good, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_lima_takes(label in "[^\\x00-\\x1f\\x7f-\\x9f]{1,50}") {
            let Ok(tenant) = Tenant::parse(&label) else { return Ok(()) };
            let name = Name::of("abcdefghijklmnopqrst", &tenant);
            let good = name.as_str().split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()));
            prop_assert!(good, "{}", name.as_str());
            prop_assert!(name.as_str().len() < 56, "{}", name.as_str());
        }
    }
}
