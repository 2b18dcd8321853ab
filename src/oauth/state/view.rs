//! One reading of the state, ready to be asked.

use std::collections::HashMap;
use std::time::Duration;

use kit::{Secret, Tenant};

use crate::store::{Digest, View as Watchable};

use super::change::{Change, Revocation, Rotation};
use super::denied::Denied;
use super::{Client, ClientId, Grant, GrantId, Moment, Scopes, State};

/// What is asked again and again in the edge.
#[derive(Debug)]
pub struct View {
    state: State,
    /// Found by half of the digest, compared by the whole of it.
    access: HashMap<[u8; 16], (Digest, GrantId)>,
}

/// What an access token is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub grant: GrantId,
    pub tenant: Tenant,
    pub client: ClientId,
    pub scopes: Scopes,
    /// What it is for; none in what an old version of the original left, and then it is for nothing.
    pub resource: Option<String>,
    /// The backend that the original bound it to.
    pub backend: Option<String>,
    pub expires: Moment,
}

impl View {
    /// A client that registered itself.
    #[must_use]
    pub fn client(&self, id: &ClientId) -> Option<&Client> {
        self.state.clients.get(id)
    }

    /// What a live access token is worth.
    #[must_use]
    pub fn access(&self, token: &Secret, now: Duration) -> Option<Access> {
        let presented = Digest::of(token.expose());
        let found = self.access.get(&presented.half());
        // A token that is not there takes the same path as one that is.
        let nothing = Digest::of_nothing();
        let (stored, _) = found.map_or((&nothing, None), |(digest, id)| (digest, Some(id)));
        if !presented.matches(stored) {
            return None;
        }
        let (_, id) = found?;
        let grant = self.state.grants.get(id)?;
        let token = grant.access.iter().find(|access| access.token.matches(&presented))?;
        if token.is_over(Moment::of(now)) {
            return None;
        }
        Some(Access {
            grant: id.clone(),
            tenant: grant.tenant.clone(),
            client: grant.client.clone(),
            scopes: token.scopes.as_ref().unwrap_or(&grant.scopes).clone(),
            resource: grant.resource.clone(),
            backend: grant.backend.clone(),
            expires: token.expires,
        })
    }

    /// Whom the invite with this code is for, if there is one, whatever it is still good for.
    #[must_use]
    pub fn invited(&self, code: &Digest) -> Option<&Tenant> {
        self.state.invites.values().find(|invite| invite.code.matches(code)).map(|invite| &invite.tenant)
    }

    /// Whether somebody has let this client in, and not taken it back.
    #[must_use]
    pub fn has_let_in(&self, client: &ClientId) -> bool {
        self.state.grants.values().any(|grant| grant.client == *client)
    }

    /// Whether this access token stands here still, whatever its time.
    #[must_use]
    pub fn holds(&self, token: &Digest) -> bool {
        self.access.get(&token.half()).is_some_and(|(stored, _)| stored.matches(token))
    }

    /// Whose login a change is about that brings something of it.
    #[must_use]
    pub fn whose(&self, change: &Change) -> Option<(GrantId, Tenant)> {
        let grants = || self.state.grants.iter();
        let found = match change {
            Change::Register(_) | Change::Consent(_) => None,
            Change::Redeem(redemption) => {
                grants().find(|(_, grant)| grant.code.as_ref().is_some_and(|code| code.matches(&redemption.code)))
            }
            Change::Refresh(Rotation { presented, .. }) => grants().find(|(_, grant)| grant.is_renewed_by(presented)),
            Change::Revoke(Revocation { presented, .. }) => grants().find(|(_, grant)| {
                grant.is_renewed_by(presented)
                    || grant.access.iter().any(|access| access.token.matches(&presented.token))
            }),
        };
        found.map(|(id, grant)| (id.clone(), grant.tenant.clone()))
    }

    /// A grant, which may be over by now.
    #[must_use]
    pub fn grant(&self, id: &GrantId) -> Option<&Grant> {
        self.state.grants.get(id)
    }

    /// Why a change would come to nothing and leave the state as it is, where that is plain to see: so that guesses cost
    /// no writing.
    #[must_use]
    pub fn forbids(&self, change: &Change) -> Option<Denied> {
        self.state.forbids(change)
    }
}

impl State {
    pub(super) fn forbids(&self, change: &Change) -> Option<Denied> {
        match change {
            Change::Register(_) | Change::Revoke(_) => None,
            Change::Consent(consent) => self.invite_of(&consent.invite).is_none().then_some(Denied::UnknownInvite),
            Change::Redeem(redemption) => {
                let waits = self.codes.iter().any(|code| code.code.matches(&redemption.code));
                let came = |grant: &Grant| grant.code.as_ref().is_some_and(|code| code.matches(&redemption.code));
                (!waits && !self.grants.values().any(came)).then_some(Denied::UnknownCode)
            }
            Change::Refresh(rotation) => {
                let knows =
                    |grant: &Grant| grant.refresh.as_ref().is_some_and(|refresh| refresh.knows(&rotation.presented));
                (!self.grants.values().any(knows)).then_some(Denied::UnknownRefresh)
            }
        }
    }
}

impl From<State> for View {
    fn from(state: State) -> Self {
        let tokens = state.grants.iter().flat_map(|(id, grant)| grant.access.iter().map(move |access| (id, access)));
        let access = tokens.map(|(id, access)| (access.token.half(), (access.token, id.clone()))).collect();
        Self { state, access }
    }
}

impl Watchable for View {
    type Document = State;

    fn count(&self) -> usize {
        self.state.grants.len()
    }
}
