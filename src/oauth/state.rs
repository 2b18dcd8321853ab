//! What a login leaves behind: clients, invites, codes and grants, in one file.
//!
//! ```text
//!   Register ─> client
//!   invite ── Consent (client, redirect, challenge) ─> code, 60 s ── Redeem (verifier) ─> grant ── Refresh ─> grant
//!                 the invite is used up in the same step          │ again: the grant ends    │ a spent one: it ends
//! ```
//!
//! Each change is a pure step of [`State`]: who applies it holds the file's lock, so that what is used once is used once
//! in all processes. Secrets never reach this module; whoever makes or receives one says its [`Digest`]. A grant holds
//! one refresh token at a time and no list of the spent ones: all tokens of a grant begin with a secret of the grant, and
//! whoever knows that secret without the token that counts now shows one that was spent.
//!
//! Everything ends by the wall clock. What would end later than it could have been given now was given by a clock that
//! was wrong, and is over. What is over is dropped at the next change, and every table has a cap, so the file is bounded.
//!
//! The original's file is read as it is, and becomes ours at its first change.
//!
//! Deliberately absent: a step by which an invite is made or another's grant ended by the edge; see [`Order`].

mod challenge;
mod change;
mod client;
mod codes;
mod denied;
mod format;
mod grant;
mod ids;
mod invite;
mod moment;
mod order;
mod original;
mod prune;
mod redirect;
mod refresh;
mod scopes;
mod secrets;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::Digest;

pub use challenge::Challenge;
pub use change::{Change, Consent, Lives, NewClient, Outcome, Party, Redemption, Revocation, Rotation};
pub use client::{Client, ClientName};
pub use codes::Code;
pub use denied::{Denied, Full, Refused};
pub use grant::Grant;
pub use ids::{ClientId, GrantId, InviteId, Malformed};
pub use invite::Invite;
pub use moment::Moment;
pub use order::{Gone, NewInvite, Order, Ordered};
pub use redirect::Redirect;
pub use refresh::{Refresh, RefreshDigests};
pub use scopes::Scopes;
pub use secrets::{Fresh, FreshRefresh, Presented, client_id, grant_id, invite_digest, invite_id};
pub use view::{Access, View};

/// All of it, as it stands in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    clients: BTreeMap<ClientId, Client>,
    invites: BTreeMap<InviteId, Invite>,
    codes: Vec<Code>,
    grants: BTreeMap<GrantId, Grant>,
    /// How many secrets stood in clear in the file that it was read from.
    clear: usize,
}

impl State {
    /// Each, by the order of their ids.
    pub fn invites(&self) -> impl Iterator<Item = (&InviteId, &Invite)> {
        self.invites.iter()
    }

    /// Each, by the order of their ids, those that are over too.
    pub fn grants(&self) -> impl Iterator<Item = (&GrantId, &Grant)> {
        self.grants.iter()
    }

    /// Each, by the order of their ids.
    pub fn clients(&self) -> impl Iterator<Item = (&ClientId, &Client)> {
        self.clients.iter()
    }

    /// How many logins a client has that are not over.
    #[must_use]
    pub fn logins_of(&self, id: &ClientId, now: Moment) -> usize {
        self.grants.values().filter(|grant| grant.client == *id && grant.counts(now)).count()
    }

    /// Whether a client registered under this id, or was entered under it.
    #[must_use]
    pub fn has_client(&self, id: &ClientId) -> bool {
        self.clients.contains_key(id)
    }

    /// The invite that has this code.
    #[must_use]
    pub fn invite_of(&self, code: &Digest) -> Option<&InviteId> {
        self.invites.iter().find(|(_, invite)| invite.code.matches(code)).map(|(id, _)| id)
    }

    /// Does one step.
    ///
    /// # Errors
    /// When a rule forbids it. The state may be another nevertheless: a code that was tried is used up, and a grant whose
    /// spent token was shown has ended.
    pub fn apply(&mut self, change: Change, now: Duration) -> Result<Outcome, Denied> {
        let now = Moment::of(now);
        self.prune(now);
        match change {
            Change::Register(client) => self.register(client, now),
            Change::Consent(consent) => self.consent(consent, now),
            Change::Redeem(redemption) => self.redeem(redemption, now),
            Change::Refresh(rotation) => self.rotate(rotation, now),
            Change::Revoke(revocation) => self.revoke(&revocation),
        }
    }
}

#[cfg(test)]
mod tests;
