//! The text of a token, its fingerprint and how two of them are compared.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::identity::CredentialId;

/// A freshly made token, `pgt_<public id>_<256-bit secret>`.
pub(super) struct Fresh {
    pub(super) id: CredentialId,
    pub(super) token: Secret,
}

/// The SHA-256 of a token: what a store holds in its place.
#[derive(Clone, Copy)]
pub(super) struct Digest([u8; DIGEST_BYTES]);

#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes")]
pub struct NoRandomness;

impl Fresh {
    pub(super) fn make() -> Result<Self, NoRandomness> {
        let mut id = [0; ID_BYTES];
        let mut secret = [0; SECRET_BYTES];
        fill(&mut id)?;
        fill(&mut secret)?;
        let id = hex(&id);
        let token = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        Ok(Self { id: CredentialId::new(id), token: Secret::new(token) })
    }
}

impl Digest {
    pub(super) fn of(token: &str) -> Self {
        let mut bytes = [0; DIGEST_BYTES];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    /// A digest that no known text has.
    pub(super) const fn of_nothing() -> Self {
        Self([0; DIGEST_BYTES])
    }

    /// Half of the digest, by which a table finds it; the other half is only ever compared in constant time.
    pub(super) fn half(&self) -> [u8; DIGEST_BYTES / 2] {
        let mut half = [0; DIGEST_BYTES / 2];
        for (to, from) in half.iter_mut().zip(self.0) {
            *to = from;
        }
        half
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    pub(super) fn matches(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
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

/// The public id of a token that a store holds in clear.
///
/// Ours carry it. Another's gets a fingerprint: eight bytes of a hash of its own, which is neither a part of the token
/// nor of the hash that an upgraded store holds.
pub(super) fn id_of_clear(token: &str) -> CredentialId {
    carried_id(token).unwrap_or_else(|| {
        let fingerprint = digest::digest(&digest::SHA256, format!("playground credential id\0{token}").as_bytes());
        let short: Vec<u8> = fingerprint.as_ref().iter().copied().take(FINGERPRINT_BYTES).collect();
        CredentialId::new(format!("clear-{}", hex(&short)))
    })
}

/// What a person may mean who names a credential: its id, or the whole token, whose id is then found in it.
#[must_use]
pub fn ids_meant(text: &Secret) -> Vec<CredentialId> {
    let text = text.expose().trim();
    // Also of a token that was pasted only in part: what names it comes first.
    let pasted = text.strip_prefix(PREFIX).map(|rest| rest.split('_').next().unwrap_or(rest));
    let said = CredentialId::parse(pasted.unwrap_or(text)).ok();
    let mut ids: Vec<CredentialId> = said.into_iter().collect();
    let carried = id_of_clear(text);
    if !ids.contains(&carried) {
        ids.push(carried);
    }
    ids
}

fn carried_id(token: &str) -> Option<CredentialId> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    let made_by_us = id.len() == 2 * ID_BYTES && URL_SAFE_NO_PAD.decode(secret).is_ok_and(|s| s.len() == SECRET_BYTES);
    if made_by_us { CredentialId::parse(id).ok() } else { None }
}

/// Random text for a file name that nobody can foresee.
pub(super) fn unforeseen() -> Result<String, NoRandomness> {
    let mut bytes = [0; ID_BYTES];
    fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    rand::fill(bytes).map_err(|aws_lc_rs::error::Unspecified| NoRandomness)
}

fn hex(bytes: &[u8]) -> String {
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

const PREFIX: &str = "pgt_";
const DIGEST_BYTES: usize = 32;
const SECRET_BYTES: usize = 32;
const FINGERPRINT_BYTES: usize = 8;

/// Enough that two of a store's ids meet about never; a mint that meets one makes another.
const ID_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use kit::Secret;

    use super::{Digest, Fresh, id_of_clear, ids_meant, unhex};

    #[test]
    fn a_token_shows_its_public_id_and_256_bits() {
        let fresh = Fresh::make().unwrap();
        let text = fresh.token.expose();
        let (id, secret) = text.strip_prefix("pgt_").unwrap().split_once('_').unwrap();
        assert_eq!(id, fresh.id.as_str());
        assert_eq!(id.len(), 12);
        assert_eq!(secret.len(), 43);
        assert_eq!(id_of_clear(text), fresh.id);
    }

    #[test]
    fn a_credential_is_meant_by_its_id_by_its_token_and_by_a_part_of_it() {
        let fresh = Fresh::make().unwrap();
        let id = fresh.id.as_str();
        for text in [id, &format!(" {id}\n"), &format!("pgt_{id}"), &format!("pgt_{id}_par"), fresh.token.expose()] {
            assert_eq!(ids_meant(&Secret::new(text)).first(), Some(&fresh.id), "{text}");
        }
        let clear = ids_meant(&Secret::new("a-public-token"));
        assert_eq!(clear.last(), Some(&id_of_clear("a-public-token")));
    }

    #[test]
    fn the_id_of_another_token_shows_nothing_of_it() {
        for token in ["", "secret", "pgt_0123456789ab_short", "pgt_x_y", "\u{1f600}\n"] {
            let id = id_of_clear(token);
            assert!(id.as_str().starts_with("clear-"), "{id}");
            assert_eq!(id.as_str().len(), 6 + 16);
            assert!(unhex(&serde_json::to_string(&Digest::of(token)).unwrap().replace('"', "")).is_some());
            assert!(!serde_json::to_string(&Digest::of(token)).unwrap().contains(&id.as_str()[6..]));
        }
    }

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of("abc");
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(text, "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
        assert!(serde_json::from_str::<Digest>(&text).unwrap().matches(&digest));
        assert!(!digest.matches(&Digest::of("abd")));
        assert!(serde_json::from_str::<Digest>(&text[..65]).is_err());
    }
}
