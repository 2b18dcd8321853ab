//! What an operator asks for, and the edge cannot.

use std::fmt;
use std::time::Duration;

use kit::Tenant;

use crate::store::Digest;

use super::State;
use super::change::NewClient;
use super::denied::{Denied, Full, Refused};
use super::ids::{ClientId, GrantId, InviteId};
use super::invite::{Invite, MOST_INVITE_LIFE, MOST_INVITES, MOST_INVITES_OF_TENANT};
use super::moment::Moment;
use super::redirect::Redirect;

#[derive(Clone, Debug)]
pub enum Order {
    Invite(NewInvite),
    RevokeInvite(InviteId),
    RevokeGrant(GrantId),
    /// Everything of a tenant: invites, codes and grants.
    RevokeTenant(Tenant),
    EnterClient(NewClient),
    /// A client with all that it was given.
    RemoveClient(ClientId),
}

#[derive(Clone, Debug)]
pub struct NewInvite {
    pub id: InviteId,
    pub code: Digest,
    pub tenant: Tenant,
    /// None where it can be used without end.
    pub uses: Option<u32>,
    /// For how long; none where that is until it is revoked.
    pub life: Option<Duration>,
    pub client: Option<ClientId>,
    pub redirect: Option<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    Invited { expires: Option<Moment> },
    Entered,
    Revoked(Gone),
}

/// How many of each do not count any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub invites: usize,
    pub codes: usize,
    pub grants: usize,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        // A code lives for a minute and is nobody's to count.
        write!(f, "{}, {}", many(self.grants, "grant"), many(self.invites, "invite"))
    }
}

impl State {
    /// Does what an operator asks for.
    ///
    /// # Errors
    /// When it is not to be had; nothing but what is over has changed then.
    pub fn order(&mut self, order: Order, now: Duration) -> Result<Ordered, Refused> {
        let now = Moment::of(now);
        self.prune(now);
        match order {
            Order::Invite(invite) => self.invite(invite, now),
            Order::RevokeInvite(id) => match self.invites.remove(&id) {
                Some(_) => Ok(Ordered::Revoked(Gone { invites: 1, ..Gone::default() })),
                None => Err(Refused::NoInvite(id)),
            },
            Order::RevokeGrant(id) => match self.grants.remove(&id) {
                Some(_) => Ok(Ordered::Revoked(Gone { grants: 1, ..Gone::default() })),
                None => Err(Refused::NoGrant(id)),
            },
            Order::RevokeTenant(tenant) => Ok(Ordered::Revoked(self.revoke_tenant(&tenant))),
            Order::EnterClient(client) => match self.enter(client, now) {
                Ok(()) => Ok(Ordered::Entered),
                Err(Denied::Full(full)) => Err(Refused::Full(full)),
                Err(Denied::Redirects { most }) => Err(Refused::Redirects { most }),
                Err(_taken) => Err(Refused::Taken),
            },
            Order::RemoveClient(id) => self.remove_client(id).map(Ordered::Revoked),
        }
    }

    fn invite(&mut self, wanted: NewInvite, now: Moment) -> Result<Ordered, Refused> {
        if wanted.uses == Some(0) {
            return Err(Refused::NoUses);
        }
        if wanted.life.is_some_and(|life| life.as_secs() == 0) {
            return Err(Refused::Past);
        }
        if wanted.life.is_some_and(|life| life > MOST_INVITE_LIFE) {
            return Err(Refused::Far { days: MOST_INVITE_LIFE.as_secs() / 86_400 });
        }
        if self.invites.contains_key(&wanted.id) || self.invites.values().any(|one| one.code.matches(&wanted.code)) {
            return Err(Refused::Taken);
        }
        let full = |these: &Self| {
            let theirs = these.invites.values().filter(|invite| invite.tenant == wanted.tenant).count();
            if theirs >= MOST_INVITES_OF_TENANT {
                return Some(Full::InvitesOfTenant { most: MOST_INVITES_OF_TENANT });
            }
            (these.invites.len() >= MOST_INVITES).then_some(Full::Invites { most: MOST_INVITES })
        };
        if full(self).is_some() {
            // Those are kept only so that whoever shows one is told why it does not count.
            self.invites.retain(|_, invite| !invite.is_spent() && !invite.is_over(now));
        }
        if let Some(full) = full(self) {
            return Err(Refused::Full(full));
        }
        let NewInvite { id, code, tenant, uses, life, client, redirect } = wanted;
        let expires = life.map(|life| now.after(life));
        self.invites.insert(id, Invite { code, tenant, uses, created: now, expires, client, redirect });
        Ok(Ordered::Invited { expires })
    }

    /// What there is of a tenant.
    #[must_use]
    pub fn of_tenant(&self, tenant: &Tenant) -> Gone {
        Gone {
            invites: self.invites.values().filter(|invite| invite.tenant == *tenant).count(),
            codes: self.codes.iter().filter(|code| code.tenant == *tenant).count(),
            grants: self.grants.values().filter(|grant| grant.tenant == *tenant).count(),
        }
    }

    /// With its codes, its grants and the invites that it alone could use.
    fn remove_client(&mut self, id: ClientId) -> Result<Gone, Refused> {
        let before = Gone { invites: self.invites.len(), codes: self.codes.len(), grants: self.grants.len() };
        if self.clients.remove(&id).is_none() {
            return Err(Refused::NoClient(id));
        }
        self.invites.retain(|_, invite| invite.client.as_ref() != Some(&id));
        self.codes.retain(|code| code.client != id);
        self.grants.retain(|_, grant| grant.client != id);
        Ok(Gone {
            invites: before.invites - self.invites.len(),
            codes: before.codes - self.codes.len(),
            grants: before.grants - self.grants.len(),
        })
    }

    fn revoke_tenant(&mut self, tenant: &Tenant) -> Gone {
        let gone = self.of_tenant(tenant);
        self.invites.retain(|_, invite| invite.tenant != *tenant);
        self.codes.retain(|code| code.tenant != *tenant);
        self.grants.retain(|_, grant| grant.tenant != *tenant);
        gone
    }
}
