//! The text of a token, and the id by which it is spoken of.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::Secret;

use crate::identity::CredentialId;
use crate::store::{NoRandomness, hex, random};

/// A freshly made token, `pgt_<public id>_<256-bit secret>`.
pub(super) struct Fresh {
    pub(super) id: CredentialId,
    pub(super) token: Secret,
}

impl Fresh {
    pub(super) fn make() -> Result<Self, NoRandomness> {
        let id = hex(&random::<ID_BYTES>()?);
        let secret = random::<SECRET_BYTES>()?;
        let token = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        Ok(Self { id: CredentialId::new(id), token: Secret::new(token) })
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

const PREFIX: &str = "pgt_";
const SECRET_BYTES: usize = 32;
const FINGERPRINT_BYTES: usize = 8;

/// Enough that two of a store's ids meet about never; a mint that meets one makes another.
const ID_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use kit::Secret;

    use super::{Fresh, id_of_clear, ids_meant};
    use crate::store::Digest;

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
            assert!(!serde_json::to_string(&Digest::of(token)).unwrap().contains(&id.as_str()[6..]));
        }
    }
}
