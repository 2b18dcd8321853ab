//! The one token of a grant that renews it.

use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::State;
use super::change::{Lives, MOST_GRANT_LIFE, Outcome, Rotation};
use super::denied::Denied;
use super::grant::{AccessToken, Grant};
use super::ids::GrantId;
use super::moment::Moment;
use super::secrets::Presented;

/// Of a grant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// Of the secret that all of a grant's tokens begin with; none in one of the original's until it is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) family: Option<Digest>,
    /// The one that counts; none where the original left none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<Digest>,
    /// Tokens of the original's form that were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) spent: Vec<Digest>,
    /// When it ends unless it is used before. What the original left has no end until our first change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Moment>,
    /// When it ends however often it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Moment>,
}

/// What is kept of a refresh token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshDigests {
    pub family: Digest,
    pub token: Digest,
}

impl Refresh {
    pub(super) fn new(digests: RefreshDigests, lives: Lives, now: Moment) -> Self {
        let last = now.after(lives.grant());
        let expires = now.after(lives.idle()).min(last);
        let RefreshDigests { family, token } = digests;
        Self { family: Some(family), current: Some(token), spent: Vec::new(), expires: Some(expires), last: Some(last) }
    }

    /// Whether it is this grant's, the one that counts or one that was used.
    pub(super) fn knows(&self, presented: &Presented) -> bool {
        let is_family = match (&self.family, &presented.family) {
            (Some(family), Some(presented)) => family.matches(presented),
            (Some(_) | None, Some(_) | None) => false,
        };
        is_family || self.is_current(presented) || self.spent.iter().any(|spent| spent.matches(&presented.token))
    }

    fn is_current(&self, presented: &Presented) -> bool {
        self.current.as_ref().is_some_and(|current| current.matches(&presented.token))
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        [self.expires, self.last].into_iter().flatten().any(|end| end.is_over(now, MOST_GRANT_LIFE))
    }

    /// The next takes the place of the one that counts.
    fn turn(&mut self, next: RefreshDigests, lives: Lives, now: Moment) {
        if self.family.is_none() {
            self.spent.extend(self.current.take());
            self.family = Some(next.family);
        }
        self.current = Some(next.token);
        let last = *self.last.get_or_insert(now.after(lives.grant()));
        self.expires = Some(now.after(lives.idle()).min(last));
    }
}

impl State {
    /// Renews a grant. A token that was used before ends it: one of two who hold it is not who it was for.
    pub(super) fn rotate(&mut self, rotation: Rotation, now: Moment) -> Result<Outcome, Denied> {
        let (id, grant, refresh) = self.refreshing(&rotation.presented).ok_or(Denied::UnknownRefresh)?;
        if !refresh.is_current(&rotation.presented) {
            self.grants.remove(&id);
            return Err(Denied::SpentRefresh);
        }
        if rotation.client.as_ref().is_some_and(|client| *client != grant.client) {
            return Err(Denied::AnotherClient);
        }
        // One without a resource is from before the original had them, which refuses it as well.
        if grant.resource.is_none() || (rotation.resource.is_some() && rotation.resource != grant.resource) {
            return Err(Denied::AnotherResource);
        }
        let Rotation { scopes, access, next, lives, .. } = rotation;
        if scopes.as_ref().is_some_and(|scopes| !grant.scopes.covers(scopes)) {
            return Err(Denied::WiderScopes);
        }
        let granted = Outcome::Granted {
            grant: id.clone(),
            tenant: grant.tenant.clone(),
            scopes: scopes.clone().unwrap_or_else(|| grant.scopes.clone()),
            expires_in: lives.access(),
            refresh: true,
        };
        if let Some(grant) = self.grants.get_mut(&id) {
            if let Some(refresh) = &mut grant.refresh {
                refresh.turn(next, lives, now);
            }
            grant.renewed = Some(now);
            grant.issue(AccessToken { token: access, expires: now.after(lives.access()), scopes });
        }
        Ok(granted)
    }

    fn refreshing(&self, presented: &Presented) -> Option<(GrantId, &Grant, &Refresh)> {
        self.grants.iter().find_map(|(id, grant)| {
            let refresh = grant.refresh.as_ref().filter(|refresh| refresh.knows(presented))?;
            Some((id.clone(), grant, refresh))
        })
    }
}
