//! What a browser carries from a person's consent to the client.

use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::State;
use super::challenge::Challenge;
use super::change::{Consent, Outcome, Redemption};
use super::client::ClientName;
use super::denied::{Denied, Full};
use super::grant::Grant;
use super::ids::ClientId;
use super::moment::Moment;
use super::redirect::Redirect;
use super::scopes::Scopes;

/// One that was not used yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    pub(super) code: Digest,
    pub(super) tenant: Tenant,
    pub(super) client: ClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<ClientName>,
    pub(super) redirect: Redirect,
    pub(super) challenge: Challenge,
    pub(super) resource: String,
    pub(super) scopes: Scopes,
    pub(super) expires: Moment,
}

impl State {
    /// Uses the invite and issues the code, or does neither.
    pub(super) fn consent(&mut self, consent: Consent, now: Moment) -> Result<Outcome, Denied> {
        if consent.resource.len() > MOST_RESOURCE_BYTES {
            return Err(Denied::LongResource { most: MOST_RESOURCE_BYTES });
        }
        if self.codes.iter().any(|code| code.code.matches(&consent.code)) {
            return Err(Denied::Taken);
        }
        let name = self.admitted(&consent.client, &consent.redirect)?;
        let tenant = self.inviting(&consent, now)?.tenant.clone();
        self.has_room(&tenant)?;
        if self.codes.len() >= MOST_CODES {
            return Err(Denied::Full(Full::Codes { most: MOST_CODES }));
        }
        if self.codes.iter().filter(|code| code.tenant == tenant).count() >= MOST_CODES_OF_TENANT {
            return Err(Denied::Full(Full::CodesOfTenant { most: MOST_CODES_OF_TENANT }));
        }
        if let Some(uses) = &mut self.inviting(&consent, now)?.uses {
            *uses = uses.saturating_sub(1);
        }
        if let Some(client) = self.clients.get_mut(consent.client.id()) {
            client.agreed = Some(now);
        }
        let Consent { code, client, redirect, challenge, resource, scopes, .. } = consent;
        let client = client.id().clone();
        let expires = now.after(CODE_LIFE);
        self.codes.push(Code {
            code,
            tenant: tenant.clone(),
            client,
            name,
            redirect,
            challenge,
            resource,
            scopes,
            expires,
        });
        Ok(Outcome::Agreed { tenant })
    }

    /// Turns a code into a grant. Whatever comes of it, the code is used up, unless there is no room.
    pub(super) fn redeem(&mut self, redemption: Redemption, now: Moment) -> Result<Outcome, Denied> {
        if self.grants.contains_key(&redemption.grant) {
            return Err(Denied::Taken);
        }
        let Some(place) = self.codes.iter().position(|code| code.code.matches(&redemption.code)) else {
            return Err(self.used_again(&redemption.code));
        };
        let code = self.codes.remove(place);
        if code.client != redemption.client {
            return Err(Denied::AnotherClient);
        }
        if redemption.redirect.as_ref().is_some_and(|redirect| *redirect != code.redirect) {
            return Err(Denied::AnotherRedirect);
        }
        if !code.challenge.matches(&redemption.proof) {
            return Err(Denied::WrongVerifier);
        }
        if redemption.resource.as_ref().is_some_and(|resource| *resource != code.resource) {
            return Err(Denied::AnotherResource);
        }
        self.grant(code, redemption, now)
    }

    /// Whoever shows a code for the second time is not who it was for, or the first was not: what it gave ends.
    fn used_again(&mut self, code: &Digest) -> Denied {
        let came = |grant: &Grant| grant.code.as_ref().is_some_and(|came| came.matches(code));
        let Some(given) = self.grants.iter().find(|(_, grant)| came(grant)).map(|(id, _)| id.clone()) else {
            return Denied::UnknownCode;
        };
        self.grants.remove(&given);
        Denied::SpentCode
    }
}

/// A browser and a client need a second; what RFC 6749 allows is ten minutes.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(60);

pub(super) const MOST_CODES_OF_TENANT: usize = 16;
pub(super) const MOST_CODES: usize = 256;

pub(super) const MOST_RESOURCE_BYTES: usize = 512;
