//! Why a step was not done.

use serde::{Deserialize, Serialize};

/// The rule that stood against a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Denied {
    #[error("no client has this id")]
    UnknownClient,
    #[error("the client did not register this redirect URI")]
    ForeignRedirect,
    #[error("a client registers 1 to {most} redirect URIs")]
    Redirects { most: usize },
    #[error("the resource has more than {most} bytes")]
    LongResource { most: usize },
    #[error("no invite is like this")]
    UnknownInvite,
    #[error("the invite was used")]
    SpentInvite,
    #[error("the invite has expired")]
    ExpiredInvite,
    #[error("the invite is for another client")]
    InviteForAnotherClient,
    #[error("the invite is for another redirect URI")]
    InviteForAnotherRedirect,
    #[error("no code is like this, or its time is over")]
    UnknownCode,
    /// What it gave has ended now.
    #[error("the code was used before")]
    SpentCode,
    #[error("the code or token is another client's")]
    AnotherClient,
    #[error("the redirect URI is not the code's")]
    AnotherRedirect,
    #[error("the verifier does not answer the code's challenge")]
    WrongVerifier,
    #[error("the code or token is for another resource")]
    AnotherResource,
    #[error("no refresh token is like this, or its time is over")]
    UnknownRefresh,
    /// Its grant has ended now.
    #[error("the refresh token was used before")]
    SpentRefresh,
    #[error("more scopes are asked for than were granted")]
    WiderScopes,
    #[error("{0}")]
    Full(Full),
    /// About never: two random names met.
    #[error("a new name is taken already")]
    Taken,
}

/// What has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Full {
    #[error("there are {most} clients, and each has a grant")]
    Clients { most: usize },
    #[error("{most} codes wait to be used")]
    Codes { most: usize },
    #[error("{most} codes of this tenant wait to be used")]
    CodesOfTenant { most: usize },
    #[error("there are {most} grants")]
    Grants { most: usize },
    #[error("there are {most} invites")]
    Invites { most: usize },
    #[error("the tenant has {most} invites")]
    InvitesOfTenant { most: usize },
}

/// What an operator asked for is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("no invite has the id `{0}`")]
    NoInvite(super::InviteId),
    #[error("no grant has the id `{0}`")]
    NoGrant(super::GrantId),
    #[error("no client has the id `{0}`")]
    NoClient(super::ClientId),
    #[error("a client has 1 to {most} addresses at which it is answered")]
    Redirects { most: usize },
    #[error("{0}")]
    Full(Full),
    #[error("an invite cannot end before it begins: that time is past")]
    Past,
    #[error("an invite is for at least one use")]
    NoUses,
    #[error("an invite ends within {days} days")]
    Far { days: u64 },
    #[error("a new name is taken already; try again")]
    Taken,
}
