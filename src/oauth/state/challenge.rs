//! What a code is bound to, so that only who asked for it can use it (RFC 7636, S256).

use std::fmt;

use aws_lc_rs::{constant_time, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::ids::Malformed;

/// The SHA-256 of a verifier, as 43 characters of base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Challenge(String);

impl Challenge {
    /// # Errors
    /// When it is not 43 characters of base64url.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        match URL_SAFE_NO_PAD.decode(text) {
            Ok(bytes) if bytes.len() == 32 => Ok(Self(text.to_owned())),
            Ok(_) | Err(_) => Err(Malformed { what: "a code challenge", rule: "is 43 characters of base64url" }),
        }
    }

    /// The challenge that a verifier answers.
    ///
    /// # Errors
    /// When it is not 43 to 128 of `A-Z a-z 0-9 - . _ ~`.
    pub fn of_verifier(verifier: &str) -> Result<Self, Malformed> {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(unreserved) {
            return Err(Malformed {
                what: "a code verifier",
                rule: "is 43 to 128 letters, digits, `-`, `.`, `_` and `~`",
            });
        }
        Ok(Self(URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))))
    }

    pub(super) fn matches(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }
}

impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Challenge(..)")
    }
}

impl TryFrom<String> for Challenge {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::parse(&text)
    }
}

impl From<Challenge> for String {
    fn from(challenge: Challenge) -> Self {
        challenge.0
    }
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    #[test]
    fn the_example_of_rfc_7636_is_answered_by_its_verifier_alone() {
        let challenge = Challenge::parse("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM").unwrap();
        let answer = Challenge::of_verifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").unwrap();
        assert!(challenge.matches(&answer));
        assert!(!challenge.matches(&Challenge::of_verifier(&"x".repeat(43)).unwrap()));
    }

    #[test]
    fn a_verifier_has_43_to_128_characters() {
        for (length, fits) in [(42, false), (43, true), (128, true), (129, false)] {
            assert_eq!(Challenge::of_verifier(&"x".repeat(length)).is_ok(), fits, "{length}");
        }
        assert!(Challenge::of_verifier(&" ".repeat(43)).is_err());
        for wrong in ["", &"x".repeat(42), &"x".repeat(44), &"+".repeat(43)] {
            assert!(Challenge::parse(wrong).is_err(), "{wrong}");
        }
    }
}
