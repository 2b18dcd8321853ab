//! Somebody else's authorization server, whose tokens say which tenant calls.
//!
//! A token is a JWT. It counts when it is signed by a key that the issuer shows now, by an algorithm that was allowed, for
//! us as the audience, and in its time; the tenant stands in a claim that the operator named. What a token says of keys by
//! itself (`jwk`, `jku`, `x5u`) is never looked at.
//!
//! It promises that an issuer which cannot be reached stops nobody whose key is known, for a day; and that tokens with
//! keys that nobody knows cost one question in half a minute, whoever sends how many.
//!
//! Deliberately absent: tokens that only the issuer can read (introspection), and those that are bound to a client's own
//! key (`cnf`), which a bearer cannot prove to have.

mod claims;
mod jwks;
mod keys;
mod settings;

use std::collections::HashSet;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use kit::tasks::Tasks;
use kit::{Secret, Tenant};

use crate::identity::CredentialId;
use crate::outbound::Outbound;
use claims::Claims;
use jwks::Key;
use keys::Keys;

pub use settings::{BadSettings, Settings, Signing};

/// An issuer with its keys; clones share them.
#[derive(Clone)]
pub struct Issuer(Arc<Shared>);

struct Shared {
    settings: Settings,
    keys: Arc<Keys>,
}

/// Who presented a token of the issuer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    pub tenant: Tenant,
    /// The same for all tokens that one subject has through one client.
    pub credential: CredentialId,
    /// When the token ends by itself, since the Unix epoch.
    pub ends: std::time::Duration,
    pub scopes: Vec<String>,
}

/// Why a token does not count. Of all this a client is told only which scopes are asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("it is no JWT that can be read")]
    Malformed,
    #[error("it has more than {MOST_TOKEN_BYTES} bytes")]
    TooLong,
    #[error("it is of the type `{0}`")]
    Type(String),
    #[error("its algorithm is not one of those that were allowed")]
    Algorithm,
    #[error("no key of the issuer's fits it")]
    UnknownKey,
    #[error("its signature is not by the key that it names")]
    Signature,
    #[error("it is by another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    /// Of this tenant, where it says one.
    #[error("its time is over")]
    Expired,
    #[error("its time has not begun")]
    Early,
    #[error("the claim `{0}` is absent or has another form than it must")]
    Claim(String),
    #[error("it is bound to a key of its client's")]
    Bound,
    #[error("it has not all scopes that are asked for")]
    Scope { tenant: Tenant, credential: CredentialId },
}

impl Issuer {
    /// One that will be asked for its keys through `outbound` when they are first needed; `tasks` owns the later questions.
    #[must_use]
    pub fn new(settings: Settings, outbound: Outbound, tasks: Tasks) -> Self {
        let keys = Arc::new(Keys::new(settings.clone(), outbound, tasks));
        Self(Arc::new(Shared { settings, keys }))
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Whether a token has the form of the issuer's. No token of ours has.
    #[must_use]
    pub fn could_be(token: &Secret) -> bool {
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let parts: Vec<_> = token.expose().splitn(4, '.').collect();
        parts.len() == 3 && parts.into_iter().all(is_part)
    }

    /// Says whose token it is.
    ///
    /// # Errors
    /// When it does not count.
    pub async fn judge(&self, token: &Secret) -> Result<Bearer, Unfit> {
        let token = token.expose();
        if token.len() > MOST_TOKEN_BYTES {
            return Err(Unfit::TooLong);
        }
        let header = decode_header(token).map_err(|fault| unfit(fault.kind()))?;
        if let Some(kind) = header.typ.filter(|kind| !TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known))) {
            return Err(Unfit::Type(kind.chars().take(MOST_SHOWN).collect()));
        }
        let algorithm = header.alg;
        if !self.0.settings.algorithms.iter().any(|allowed| allowed.algorithm() == algorithm) {
            return Err(Unfit::Algorithm);
        }
        let keys = Keys::fitting(&self.0.keys, header.kid.as_deref(), algorithm).await;
        let mut why = Unfit::UnknownKey;
        for key in &keys {
            match self.verify(token, key, algorithm) {
                Ok(claims) => return self.bearer(&claims),
                // Another key of the same name may be the one.
                Err(Unfit::Signature) => why = Unfit::Signature,
                Err(other) => return Err(other),
            }
        }
        Err(why)
    }

    fn verify(&self, token: &str, key: &Key, algorithm: Algorithm) -> Result<Claims, Unfit> {
        let mut rules = Validation::new(algorithm);
        rules.leeway = LEEWAY_SECONDS;
        rules.validate_nbf = true;
        rules.set_issuer(&[&self.0.settings.issuer]);
        rules.set_audience(&self.0.settings.audience);
        rules.set_required_spec_claims(&["exp", "iss", "aud"]);
        let token = decode::<Claims>(token, key.decoding(), &rules).map_err(|fault| unfit(fault.kind()))?;
        Ok(token.claims)
    }

    fn bearer(&self, claims: &Claims) -> Result<Bearer, Unfit> {
        let Settings { issuer, tenant_claim, scopes: wanted, .. } = &self.0.settings;
        // The library also takes a list in which it is one of several.
        if claims.text("iss") != Some(issuer) {
            return Err(Unfit::Issuer);
        }
        if claims.has("cnf") {
            return Err(Unfit::Bound);
        }
        let absent = |claim: &str| Unfit::Claim(claim.to_owned());
        let tenant = claims.text(tenant_claim).and_then(|text| Tenant::parse(text).ok());
        let tenant = tenant.ok_or_else(|| absent(tenant_claim))?;
        let ends = claims.seconds("exp").ok_or_else(|| absent("exp"))?;
        let client = claims.text("client_id").or_else(|| claims.text("azp"));
        let subject = claims.text("sub").or(client).ok_or_else(|| absent("sub"))?;
        let scopes = claims.scopes();
        let held: HashSet<_> = scopes.iter().collect();
        let credential = credential(&[issuer, subject, client.unwrap_or_default(), tenant.as_str()]);
        if !wanted.iter().all(|scope| held.contains(scope)) {
            return Err(Unfit::Scope { tenant, credential });
        }
        Ok(Bearer { tenant, credential, ends, scopes })
    }
}

/// A name for whoever holds tokens by the same words.
fn credential(words: &[&str]) -> CredentialId {
    let mut text = Vec::new();
    for word in words {
        // No two lists of words read the same.
        text.extend_from_slice(&word.len().to_be_bytes());
        text.extend_from_slice(word.as_bytes());
    }
    let hash = digest(&SHA256, &text);
    let short = hash.as_ref().get(..CREDENTIAL_BYTES).unwrap_or_default();
    CredentialId::new(format!("jwt-{}", HEXLOWER.encode_display(short)))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's list grows, and what is not named is malformed")]
fn unfit(kind: &ErrorKind) -> Unfit {
    match kind {
        ErrorKind::InvalidSignature
        | ErrorKind::InvalidEcdsaKey
        | ErrorKind::InvalidEddsaKey
        | ErrorKind::InvalidRsaKey(_)
        | ErrorKind::InvalidKeyFormat => Unfit::Signature,
        ErrorKind::InvalidAlgorithm
        | ErrorKind::InvalidAlgorithmName
        | ErrorKind::MissingAlgorithm
        | ErrorKind::UnsupportedAlgorithm => Unfit::Algorithm,
        ErrorKind::ExpiredSignature => Unfit::Expired,
        ErrorKind::ImmatureSignature => Unfit::Early,
        ErrorKind::InvalidIssuer => Unfit::Issuer,
        ErrorKind::InvalidAudience => Unfit::Audience,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => Unfit::Claim(claim.clone()),
        _ => Unfit::Malformed,
    }
}

/// More than any issuer puts into one, and less than a request's head may have.
const MOST_TOKEN_BYTES: usize = 16 * 1024;

/// Clocks of servers differ by seconds.
const LEEWAY_SECONDS: u64 = 30;

/// What an access token may call itself (RFC 9068, and what most issuers write); other JWTs of the same issuer, such as
/// those that tell of a logout, are none.
const TYPES: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// In a log line.
const MOST_SHOWN: usize = 32;

/// No two of the holders that a server ever sees share a name.
const CREDENTIAL_BYTES: usize = 12;

#[cfg(test)]
#[cfg(feature = "tls")]
mod tests;
