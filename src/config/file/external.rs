//! `[oauth.external]` of a `playground.toml`.

use serde::Deserialize;

use crate::oauth::issuer::{BadSettings, Settings, Signing};

/// An issuer whose tokens could count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Said")]
pub struct External(pub Settings);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    issuer: String,
    audience: Texts,
    jwks_url: Option<String>,
    tenant_claim: String,
    #[serde(default = "Signing::usual")]
    algorithms: Vec<Signing>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    allow_private: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl TryFrom<Said> for External {
    type Error = BadSettings;

    fn try_from(said: Said) -> Result<Self, BadSettings> {
        let Said { issuer, audience, jwks_url, tenant_claim, algorithms, scopes, allow_private } = said;
        let audience = match audience {
            Texts::One(one) => vec![one],
            Texts::Several(several) => several,
        };
        let settings = Settings { issuer, audience, jwks_url, tenant_claim, algorithms, scopes, allow_private };
        settings.check()?;
        Ok(Self(settings))
    }
}
