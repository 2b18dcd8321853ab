//! What a file holds in place of a secret, and where secrets come from.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, rand};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The SHA-256 of a secret that nobody can guess: what a file holds in its place.
#[derive(Clone, Copy)]
pub struct Digest([u8; DIGEST_BYTES]);

#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes")]
pub struct NoRandomness;

impl Digest {
    pub(crate) fn of(secret: &str) -> Self {
        let mut bytes = [0; DIGEST_BYTES];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref());
        Self(bytes)
    }

    /// A digest that no known text has.
    pub(crate) const fn of_nothing() -> Self {
        Self([0; DIGEST_BYTES])
    }

    /// Half of the digest, by which a table finds it; the other half is only ever compared in constant time.
    pub(crate) fn half(&self) -> [u8; DIGEST_BYTES / 2] {
        let mut half = [0; DIGEST_BYTES / 2];
        for (to, from) in half.iter_mut().zip(self.0) {
            *to = from;
        }
        half
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

/// As [`Digest::matches`].
impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other)
    }
}

impl Eq for Digest {}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        unhex(&text).map(Self).ok_or_else(|| serde::de::Error::custom("not a SHA-256 in hexadecimal"))
    }
}

/// So many bytes that nobody can foresee.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|aws_lc_rs::error::Unspecified| NoRandomness)?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

fn unhex(text: &str) -> Option<[u8; DIGEST_BYTES]> {
    if text.len() != 2 * DIGEST_BYTES {
        return None;
    }
    let mut digits = text.bytes().map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
    let mut bytes = [0; DIGEST_BYTES];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(bytes)
}

const DIGEST_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of("abc");
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(text, "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
        assert!(serde_json::from_str::<Digest>(&text).unwrap().matches(&digest));
        assert!(!digest.matches(&Digest::of("abd")));
        for wrong in [&text[..65], &text.replace('b', "é"), "\"\""] {
            assert!(serde_json::from_str::<Digest>(wrong).is_err(), "{wrong}");
        }
    }
}
