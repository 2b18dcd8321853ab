//! The keys of an issuer, as its document lists them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// A key that can check signatures.
#[derive(Clone)]
pub(super) struct Key {
    name: Option<String>,
    /// What it may be used with.
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

/// Why a document holds no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoKeys {
    #[error("it is no list of keys")]
    Malformed(#[source] serde_json::Error),
    #[error("it lists more than {MOST_KEYS} keys")]
    TooMany,
    #[error("none of its keys can be used: only RSA of 2048 bits and more, P-256, P-384 and Ed25519 can")]
    None,
}

impl Key {
    pub(super) fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }

    /// Whether a token of this algorithm that names this key may be meant.
    pub(super) fn fits(&self, name: Option<&str>, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm) && name.is_none_or(|name| self.name.as_deref() == Some(name))
    }

    /// None where it is not a key that may check a signature.
    fn of(key: &Jwk) -> Option<Self> {
        let common = &key.common;
        let signs = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|can| can.contains(&KeyOperations::Verify));
        let mut algorithms = algorithms(&key.algorithm);
        if let Some(own) = common.key_algorithm {
            algorithms.retain(|algorithm| own.to_string() == format!("{algorithm:?}"));
        }
        if !signs || algorithms.is_empty() {
            return None;
        }
        Some(Self { name: common.key_id.clone(), algorithms, decoding: DecodingKey::from_jwk(key).ok()? })
    }
}

/// The keys of a document. What else it lists, such as keys of kinds to come, is passed over.
pub(super) fn read(document: &[u8]) -> Result<Vec<Key>, NoKeys> {
    #[derive(Deserialize)]
    struct Document {
        keys: Vec<Value>,
    }
    let Document { keys } = serde_json::from_slice(document).map_err(NoKeys::Malformed)?;
    if keys.len() > MOST_KEYS {
        return Err(NoKeys::TooMany);
    }
    let read = keys.into_iter().filter_map(|key| Key::of(&serde_json::from_value(key).ok()?));
    let keys: Vec<_> = read.collect();
    if keys.is_empty() { Err(NoKeys::None) } else { Ok(keys) }
}

/// What a key of this kind and size may be used with; nothing by which it would be too weak.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's lists grow, and what is not named is not taken")]
fn algorithms(key: &AlgorithmParameters) -> Vec<Algorithm> {
    match key {
        AlgorithmParameters::RSA(key) if has_modulus(&key.n) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDSA],
        _ => Vec::new(),
    }
}

fn has_modulus(text: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else { return false };
    let significant = bytes.iter().skip_while(|byte| **byte == 0).count();
    let leading = bytes.iter().find(|byte| **byte != 0).map_or(8, |byte| byte.leading_zeros());
    let bits = (significant * 8).saturating_sub(leading as usize);
    (LEAST_RSA_BITS..=MOST_RSA_BITS).contains(&bits)
}

/// An issuer has a few: that of today, those before and after.
const MOST_KEYS: usize = 64;

const LEAST_RSA_BITS: usize = 2048;

/// A longer one makes a check slow, and somebody else chooses how often it is made.
const MOST_RSA_BITS: usize = 8192;

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::Algorithm;
    use serde_json::{Value, json};

    use super::{MOST_KEYS, NoKeys, read};

    fn rsa(bits: usize) -> Value {
        let mut modulus = vec![0xff; bits / 8];
        if !bits.is_multiple_of(8) {
            modulus.insert(0, (1 << (bits % 8)) - 1);
        }
        json!({ "kty": "RSA", "kid": "r", "n": URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB" })
    }

    fn count(keys: &[Value]) -> usize {
        read(json!({ "keys": keys }).to_string().as_bytes()).map_or(0, |keys| keys.len())
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn a_key_is_as_long_as_it_must_be() {
        for (bits, good) in [(1024, 0), (2047, 0), (2048, 1), (4096, 1), (8192, 1), (8193, 0)] {
            assert_eq!(count(&[rsa(bits)]), good, "{bits}");
        }
        let padded = URL_SAFE_NO_PAD.encode([vec![0; 256], vec![0xff; 128]].concat());
        assert_eq!(count(&[with(rsa(2048), "n", padded.into())]), 0, "zeros add no strength");
    }

    #[test]
    fn only_keys_that_check_signatures_are_taken() {
        for (name, value, good) in [
            ("use", json!("sig"), 1),
            ("use", json!("enc"), 0),
            ("key_ops", json!(["verify"]), 1),
            ("key_ops", json!(["encrypt"]), 0),
            ("alg", json!("RS512"), 1),
            ("alg", json!("HS256"), 0),
            ("alg", json!("ES256"), 0),
            ("alg", json!("RSA-OAEP"), 0),
        ] {
            assert_eq!(count(&[with(rsa(2048), name, value.clone())]), good, "{name} {value}");
        }
        for other in [
            json!({"kty":"oct","k":"c2VjcmV0"}),
            json!({"kty":"AKP","pub":"x"}),
            json!({"kty":"EC","crv":"P-521","x":"AA","y":"AA"}),
            json!(5),
        ] {
            assert_eq!(count(&[other.clone(), rsa(2048)]), 1, "{other} is passed over");
            assert_eq!(count(&[other]), 0);
        }
    }

    #[test]
    fn a_key_fits_by_its_name_and_its_algorithm() {
        let keys = read(json!({ "keys": [with(rsa(2048), "alg", "RS256".into())] }).to_string().as_bytes()).unwrap();
        let fits = |name, algorithm| keys[0].fits(name, algorithm);
        assert!(fits(Some("r"), Algorithm::RS256) && fits(None, Algorithm::RS256));
        assert!(!fits(Some("R"), Algorithm::RS256));
        for other in [Algorithm::RS384, Algorithm::PS256, Algorithm::HS256, Algorithm::ES256] {
            assert!(!fits(Some("r"), other), "{other:?}");
        }
    }

    #[test]
    fn so_many_keys_are_read_and_one_more_is_not() {
        assert_eq!(count(&vec![rsa(2048); MOST_KEYS]), MOST_KEYS);
        assert!(matches!(
            read(json!({ "keys": vec![rsa(2048); MOST_KEYS + 1] }).to_string().as_bytes()),
            Err(NoKeys::TooMany)
        ));
        assert!(matches!(read(b"{}"), Err(NoKeys::Malformed(_))));
        assert!(matches!(read(br#"{"keys":[]}"#), Err(NoKeys::None)));
    }
}
