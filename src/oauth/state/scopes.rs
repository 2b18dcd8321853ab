//! What a grant is for.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::Malformed;

/// A set of scopes; its text is RFC 6749's, with spaces between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes(BTreeSet<String>);

impl Scopes {
    /// # Errors
    /// When a scope is not as RFC 6749 spells it, or when all have more than 256 bytes.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let spelled = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if text.len() > MOST_BYTES || !text.bytes().all(|byte| byte == b' ' || spelled(byte)) {
            return Err(Malformed {
                what: "a scope",
                rule: "is visible ASCII without quotes, 256 bytes at most in all",
            });
        }
        Ok(Self(text.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect()))
    }

    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether nothing is in `other` that is not in this.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Scopes {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::parse(&text)
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

const MOST_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::Scopes;

    #[test]
    fn scopes_are_a_set_whatever_their_order() {
        let two = Scopes::parse("offline_access mcp").unwrap();
        assert_eq!(two, Scopes::parse(" mcp  offline_access mcp").unwrap());
        assert_eq!(two.to_string(), "mcp offline_access");
        assert!(two.covers(&Scopes::parse("mcp").unwrap()) && two.covers(&Scopes::default()));
        assert!(!Scopes::parse("mcp").unwrap().covers(&two));
        for wrong in ["a\"b", "a\\b", "a\tb", "é", &"x".repeat(257)] {
            assert!(Scopes::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Scopes::parse(&"x".repeat(256)).is_ok());
    }
}
