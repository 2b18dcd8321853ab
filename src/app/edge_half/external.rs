//! Callers whom somebody else's authorization server lets in.

use kit::Secret;

use super::authority::by;
use crate::identity::Pass;
use crate::identity::reach::Reach;
use crate::identity::store::{Credentials, Verdict};
use crate::oauth::issuer::{Issuer, Unfit};

#[derive(Clone)]
pub(super) struct External {
    issuer: Issuer,
}

impl External {
    pub(super) fn new(issuer: Issuer) -> Self {
        Self { issuer }
    }

    /// Who presented a token that nobody else knows.
    pub(super) async fn authenticate(&self, token: &Secret, credentials: &Credentials) -> Verdict {
        if !Issuer::could_be(token) {
            return Verdict::Unknown;
        }
        match self.issuer.judge(token).await {
            Ok(bearer) => {
                let pass = Pass::Elsewhere { ends: bearer.ends };
                // The scopes that it must have were looked at; those of another server's bound nothing here.
                by(pass, credentials.reach(bearer.tenant, None, bearer.credential, Reach::default()))
            }
            Err(Unfit::Scope { tenant, credential }) => {
                Verdict::LacksScopes { credential, tenant, wanted: self.issuer.settings().scopes.clone() }
            }
            Err(why) => {
                // Anybody can send one, as often as the address may fail.
                tracing::debug!(reason = %why, "a token of the issuer's does not count");
                Verdict::Unknown
            }
        }
    }
}
