//! What a login gave: the right of a client to act as a tenant.

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::State;
use super::change::{MOST_ACCESS_LIFE, Outcome, Redemption, Revocation};
use super::client::ClientName;
use super::codes::Code;
use super::denied::{Denied, Full};
use super::ids::ClientId;
use super::moment::Moment;
use super::refresh::Refresh;
use super::scopes::Scopes;

/// All tokens of one login; they end together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    pub tenant: Tenant,
    pub client: ClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ClientName>,
    pub scopes: Scopes,
    /// What its tokens are for; none in what an old version of the original left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The backend that the original bound it to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// None in what the original left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Moment>,
    /// When its tokens were last renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Moment>,
    /// What it came from, so that the code's second use is known as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Digest>,
    #[serde(default)]
    pub(super) access: Vec<AccessToken>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh: Option<Refresh>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessToken {
    pub(super) token: Digest,
    pub(super) expires: Moment,
    /// Where they are fewer than the grant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scopes: Option<Scopes>,
}

impl Grant {
    /// Gives it another access token; one that it has too many goes.
    pub(super) fn issue(&mut self, token: AccessToken) {
        while self.access.len() >= MOST_ACCESS_OF_GRANT {
            let oldest =
                self.access.iter().enumerate().min_by_key(|(_, access)| access.expires).map(|(place, _)| place);
            self.access.remove(oldest.unwrap_or(0));
        }
        self.access.push(token);
    }

    /// Whether a token of it does.
    #[must_use]
    pub fn counts(&self, now: Moment) -> bool {
        let access = self.access.iter().any(|access| !access.is_over(now));
        access || self.refresh.as_ref().is_some_and(|refresh| !refresh.is_over(now))
    }

    /// When its last token ends; none where that is never.
    #[must_use]
    pub fn ends(&self) -> Option<Moment> {
        let access = self.access.iter().map(|access| access.expires).max();
        match &self.refresh {
            Some(refresh) => refresh.expires.map(|expires| access.map_or(expires, |access| access.max(expires))),
            None => access,
        }
    }

    pub(super) fn last(&self) -> Option<Moment> {
        self.renewed.max(self.created)
    }
}

impl AccessToken {
    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.expires.is_over(now, MOST_ACCESS_LIFE)
    }
}

impl State {
    pub(super) fn grant(&mut self, code: Code, redemption: Redemption, now: Moment) -> Result<Outcome, Denied> {
        self.make_room(&code.tenant)?;
        let Redemption { grant: id, access, refresh, lives, .. } = redemption;
        let refresh = refresh.map(|digests| Refresh::new(digests, lives, now));
        let granted = Outcome::Granted {
            grant: id.clone(),
            tenant: code.tenant.clone(),
            scopes: code.scopes.clone(),
            expires_in: lives.access(),
            refresh: refresh.is_some(),
        };
        let access = AccessToken { token: access, expires: now.after(lives.access()), scopes: None };
        let grant = Grant {
            tenant: code.tenant,
            client: code.client,
            name: code.name,
            scopes: code.scopes,
            resource: Some(code.resource),
            backend: None,
            created: Some(now),
            renewed: None,
            code: Some(code.code),
            access: vec![access],
            refresh,
        };
        self.grants.insert(id, grant);
        Ok(granted)
    }

    /// A tenant that has too many loses the one that was renewed least lately; no tenant loses one to another.
    fn make_room(&mut self, tenant: &Tenant) -> Result<(), Denied> {
        let theirs = || self.grants.iter().filter(|(_, grant)| grant.tenant == *tenant);
        if theirs().count() >= MOST_GRANTS_OF_TENANT {
            let idle = theirs().min_by_key(|(_, grant)| grant.last()).map(|(id, _)| id.clone());
            self.grants.retain(|id, _| Some(id) != idle.as_ref());
        }
        let full = self.grants.len() >= MOST_GRANTS;
        if full { Err(Denied::Full(Full::Grants { most: MOST_GRANTS })) } else { Ok(()) }
    }

    /// Ends what a client gives back: an access token alone, or with a refresh token its whole grant.
    pub(super) fn revoke(&mut self, revocation: &Revocation) -> Result<Outcome, Denied> {
        let foreign = |grant: &Grant| revocation.client.as_ref().is_some_and(|client| *client != grant.client);
        let token = &revocation.presented.token;
        for (id, grant) in &mut self.grants {
            if let Some(place) = grant.access.iter().position(|access| access.token.matches(token)) {
                if foreign(grant) {
                    return Err(Denied::AnotherClient);
                }
                grant.access.remove(place);
                return Ok(Outcome::Revoked { grant: Some(id.clone()) });
            }
        }
        let knows = |grant: &Grant| grant.refresh.as_ref().is_some_and(|refresh| refresh.knows(&revocation.presented));
        match self.grants.iter().find(|(_, grant)| knows(grant)) {
            Some((_, grant)) if foreign(grant) => Err(Denied::AnotherClient),
            Some((id, _)) => {
                let id = id.clone();
                self.grants.remove(&id);
                Ok(Outcome::Revoked { grant: Some(id) })
            }
            None => Ok(Outcome::Revoked { grant: None }),
        }
    }
}

/// Each may have four kilobytes: half of what the file may have.
pub(super) const MOST_GRANTS: usize = 2000;
pub(super) const MOST_GRANTS_OF_TENANT: usize = 128;

/// What still counts after a client has refreshed early or in parallel.
pub(super) const MOST_ACCESS_OF_GRANT: usize = 4;
