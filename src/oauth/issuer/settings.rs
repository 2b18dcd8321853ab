//! What an operator says of an issuer.

use std::fmt;
use std::str::FromStr;

use jsonwebtoken::{Algorithm, AlgorithmFamily};
use serde::{Deserialize, Serialize};

use crate::outbound::{HttpsUrl, NotHttps};

/// Whose tokens count, and what in them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// As it stands in `iss`.
    pub issuer: String,
    /// What may stand in `aud` for a token to be for this server.
    pub audience: Vec<String>,
    /// Where the keys are; without it the issuer's own metadata says so.
    pub jwks_url: Option<String>,
    /// The claim whose text is the tenant's name.
    pub tenant_claim: String,
    pub algorithms: Vec<Signing>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// Whether its metadata and its keys may lie at private addresses, this machine's own among them.
    pub allow_private: bool,
}

/// An algorithm by which a holder of public keys can check a signature. None by a shared secret is one.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signing(Algorithm);

/// Why settings lead nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    #[error("issuer: {0}")]
    Issuer(NotHttps),
    #[error("jwks_url: {0}")]
    Keys(NotHttps),
    #[error("audience: name at least one, such as the address at which clients know this server")]
    NoAudience,
    #[error("tenant_claim: name the claim that holds the tenant's name")]
    NoTenantClaim,
    #[error("algorithms: name at least one, such as RS256 or ES256")]
    NoAlgorithm,
    #[error("scopes: `{0}` is none; each is visible ASCII without spaces, quotes and backslashes")]
    Scope(String),
}

/// A word that names no algorithm which may be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA")]
pub struct NotSigning(String);

impl Settings {
    /// # Errors
    /// When no token could ever count.
    pub fn check(&self) -> Result<(), BadSettings> {
        HttpsUrl::parse(&self.issuer).map_err(BadSettings::Issuer)?;
        self.jwks_url.as_deref().map(HttpsUrl::parse).transpose().map_err(BadSettings::Keys)?;
        if !self.audience.iter().any(|audience| !audience.is_empty()) {
            return Err(BadSettings::NoAudience);
        }
        if self.tenant_claim.is_empty() {
            return Err(BadSettings::NoTenantClaim);
        }
        if self.algorithms.is_empty() {
            return Err(BadSettings::NoAlgorithm);
        }
        self.scopes.iter().find(|scope| !is_scope(scope)).map_or(Ok(()), |bad| Err(BadSettings::Scope(bad.clone())))
    }
}

/// RFC 6749, 3.3. Clients are told them within quotes.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

impl Signing {
    /// What issuers sign with where nobody has decided otherwise.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        vec![Self(Algorithm::RS256), Self(Algorithm::ES256)]
    }

    pub(super) fn algorithm(self) -> Algorithm {
        self.0
    }
}

impl FromStr for Signing {
    type Err = NotSigning;

    fn from_str(text: &str) -> Result<Self, NotSigning> {
        let algorithm = Algorithm::from_str(text).ok();
        let public = algorithm.filter(|algorithm| algorithm.family() != AlgorithmFamily::Hmac);
        public.map(Self).ok_or_else(|| NotSigning(text.to_owned()))
    }
}

impl fmt::Display for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its variants are called as the algorithms are.
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Signing {
    type Error = NotSigning;

    fn try_from(text: String) -> Result<Self, NotSigning> {
        text.parse()
    }
}

impl From<Signing> for String {
    fn from(signing: Signing) -> Self {
        signing.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{BadSettings, Settings, Signing};

    #[test]
    fn only_signatures_by_a_private_key_can_be_allowed() {
        for good in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"] {
            assert_eq!(good.parse::<Signing>().map(|signing| signing.to_string()), Ok(good.to_owned()));
        }
        for bad in ["none", "None", "HS256", "HS384", "HS512", "rs256", "ES512", "ES256K", ""] {
            assert!(bad.parse::<Signing>().is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_by_which_no_token_could_count_are_refused() {
        let good = Settings {
            issuer: "https://auth.example/realm".to_owned(),
            audience: vec!["https://mcp.example".to_owned()],
            jwks_url: None,
            tenant_claim: "tenant".to_owned(),
            algorithms: Signing::usual(),
            scopes: Vec::new(),
            allow_private: false,
        };
        assert_eq!(good.check(), Ok(()));
        let check = |change: fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            settings.check().expect_err("a fault")
        };
        assert!(matches!(check(|bad| bad.issuer = "http://auth.example".to_owned()), BadSettings::Issuer(_)));
        assert!(matches!(check(|bad| bad.jwks_url = Some("auth.example".to_owned())), BadSettings::Keys(_)));
        assert_eq!(check(|bad| bad.audience = vec![String::new()]), BadSettings::NoAudience);
        assert_eq!(check(|bad| bad.tenant_claim.clear()), BadSettings::NoTenantClaim);
        assert_eq!(check(|bad| bad.algorithms.clear()), BadSettings::NoAlgorithm);
        for odd in ["", "a b", "a\"b", "a\\b", "\u{e4}"] {
            let mut settings = good.clone();
            settings.scopes = vec!["good:1.2/x".to_owned(), odd.to_owned()];
            assert_eq!(settings.check(), Err(BadSettings::Scope(odd.to_owned())));
            settings.scopes.pop();
            assert_eq!(settings.check(), Ok(()));
        }
    }
}
