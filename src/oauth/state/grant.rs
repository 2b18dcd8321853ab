//! What a login gave: the right of a client to act as a tenant.

use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::State;
use super::change::{MOST_ACCESS_LIFE, Outcome, Redemption, Revocation};
use super::client::ClientName;
use super::codes::Code;
use super::denied::{Denied, Full};
use super::ids::{ClientId, GrantId};
use super::moment::Moment;
use super::refresh::Refresh;
use super::scopes::Scopes;
use super::secrets::Presented;

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

    /// Whether this is its refresh token, the one that counts or one that was used.
    pub(super) fn is_renewed_by(&self, presented: &Presented) -> bool {
        self.refresh.as_ref().is_some_and(|refresh| refresh.knows(presented))
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
        if let Err(full) = self.has_room(&code.tenant) {
            // That is nobody's doing who brings a code; it can be brought again.
            self.codes.push(code);
            return Err(full);
        }
        self.make_room(&code.tenant);
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

    /// Whether another grant of this tenant has room, if need be in place of another of its own.
    pub(super) fn has_room(&self, tenant: &Tenant) -> Result<(), Denied> {
        let fits = self.grants.len() < MOST_GRANTS || self.theirs(tenant).count() >= MOST_GRANTS_OF_TENANT;
        if fits { Ok(()) } else { Err(Denied::Full(Full::Grants { most: MOST_GRANTS })) }
    }

    /// A tenant that has too many loses the one that was renewed least lately; no tenant loses one to another.
    fn make_room(&mut self, tenant: &Tenant) {
        if self.theirs(tenant).count() >= MOST_GRANTS_OF_TENANT {
            let idle = self.theirs(tenant).min_by_key(|(_, grant)| grant.last()).map(|(id, _)| id.clone());
            self.grants.retain(|id, _| Some(id) != idle.as_ref());
        }
    }

    fn theirs(&self, tenant: &Tenant) -> impl Iterator<Item = (&GrantId, &Grant)> {
        self.grants.iter().filter(move |(_, grant)| grant.tenant == *tenant)
    }

    /// How many grants count that are not for this resource.
    #[must_use]
    pub fn grants_for_others(&self, resource: &str, now: Duration) -> usize {
        let now = Moment::of(now);
        let is_other = |grant: &&Grant| grant.resource.as_deref() != Some(resource) && grant.counts(now);
        self.grants.values().filter(is_other).count()
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
