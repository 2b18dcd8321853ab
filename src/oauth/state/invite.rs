//! What a person shows to be let in.

use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::State;
use super::change::Consent;
use super::denied::Denied;
use super::ids::ClientId;
use super::moment::Moment;
use super::redirect::Redirect;

/// One that an operator made; its code is known to whom it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invite {
    pub(super) code: Digest,
    pub tenant: Tenant,
    /// How often it can still be used; none where that is without end.
    pub uses: Option<u32>,
    pub created: Moment,
    /// None only in what the original left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
}

impl Invite {
    #[must_use]
    pub fn is_over(&self, now: Moment) -> bool {
        self.expires.is_some_and(|expires| expires.is_over(now, MOST_INVITE_LIFE))
    }

    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.uses == Some(0)
    }
}

impl State {
    /// The invite that lets this one in.
    pub(super) fn inviting(&mut self, consent: &Consent, now: Moment) -> Result<&mut Invite, Denied> {
        let found = self.invites.values_mut().find(|invite| invite.code.matches(&consent.invite));
        let invite = found.ok_or(Denied::UnknownInvite)?;
        if invite.is_over(now) {
            return Err(Denied::ExpiredInvite);
        }
        if invite.is_spent() {
            return Err(Denied::SpentInvite);
        }
        if invite.client.as_ref().is_some_and(|client| client != consent.client.id()) {
            return Err(Denied::InviteForAnotherClient);
        }
        if invite.redirect.as_ref().is_some_and(|redirect| !redirect.admits(&consent.redirect)) {
            return Err(Denied::InviteForAnotherRedirect);
        }
        Ok(invite)
    }
}

/// Of one tenant, and of all: each may have more than a kilobyte.
pub(super) const MOST_INVITES_OF_TENANT: usize = 64;
pub(super) const MOST_INVITES: usize = 1000;

pub(super) const MOST_INVITE_LIFE: Duration = Duration::from_secs(366 * 86_400);

/// How long one that is over is still called expired and not unknown.
pub(super) const OVER_LIFE: Duration = Duration::from_secs(7 * 86_400);
