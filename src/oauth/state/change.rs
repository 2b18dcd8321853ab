//! What the edge asks for, and what it is told.

use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use crate::store::Digest;

use super::challenge::Challenge;
use super::client::ClientName;
use super::ids::{ClientId, GrantId};
use super::redirect::Redirect;
use super::refresh::RefreshDigests;
use super::scopes::Scopes;
use super::secrets::Presented;

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Change {
    Register(NewClient),
    /// A person showed an invite and agreed.
    Consent(Consent),
    /// A client brings its code.
    Redeem(Redemption),
    /// A client brings its refresh token.
    Refresh(Rotation),
    /// A client gives a token back (RFC 7009).
    Revoke(Revocation),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewClient {
    pub id: ClientId,
    pub redirects: Vec<Redirect>,
    pub name: Option<ClientName>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Consent {
    pub invite: Digest,
    /// The code to be issued.
    pub code: Digest,
    pub client: Party,
    pub redirect: Redirect,
    pub challenge: Challenge,
    /// What the tokens will be for, as they are compared later: byte for byte.
    pub resource: String,
    pub scopes: Scopes,
}

/// Who asks a person to agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Party {
    /// One whose redirects are in the state.
    Registered(ClientId),
    /// One with a document of its own, in which the edge has found the redirect.
    Documented { id: ClientId, name: Option<ClientName> },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Redemption {
    pub code: Digest,
    pub client: ClientId,
    /// Where it is said, it must be the code's.
    pub redirect: Option<Redirect>,
    /// Of the verifier that was brought.
    pub proof: Challenge,
    /// Where it is said, it must be the code's.
    pub resource: Option<String>,
    pub grant: GrantId,
    pub access: Digest,
    /// None where the grant shall end with its access token.
    pub refresh: Option<RefreshDigests>,
    pub lives: Lives,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rotation {
    pub presented: Presented,
    pub client: Option<ClientId>,
    /// Narrower ones, for the access token alone.
    pub scopes: Option<Scopes>,
    pub resource: Option<String>,
    pub access: Digest,
    pub next: RefreshDigests,
    pub lives: Lives,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Revocation {
    /// An access token or a refresh token.
    pub presented: Presented,
    pub client: Option<ClientId>,
}

/// How long what is granted lasts; never longer than a day for an access token and a year for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    pub access: Duration,
    /// Of a refresh token that is not used.
    pub idle: Duration,
    /// Of a grant, however often it is refreshed.
    pub grant: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Registered,
    /// The invite is used, the code counts.
    Agreed {
        tenant: Tenant,
    },
    /// The tokens count.
    Granted {
        grant: GrantId,
        tenant: Tenant,
        scopes: Scopes,
        expires_in: Duration,
        refresh: bool,
    },
    /// What was given back does not count, whether it did before or not.
    Revoked {
        grant: Option<GrantId>,
    },
}

impl Party {
    #[must_use]
    pub fn id(&self) -> &ClientId {
        match self {
            Self::Registered(id) | Self::Documented { id, .. } => id,
        }
    }
}

impl Lives {
    pub(super) fn access(&self) -> Duration {
        self.access.clamp(LEAST_LIFE, MOST_ACCESS_LIFE)
    }

    pub(super) fn idle(&self) -> Duration {
        self.idle.clamp(LEAST_LIFE, MOST_GRANT_LIFE)
    }

    pub(super) fn grant(&self) -> Duration {
        self.grant.clamp(LEAST_LIFE, MOST_GRANT_LIFE)
    }
}

impl Default for Lives {
    fn default() -> Self {
        Self { access: Duration::from_secs(3600), idle: 30 * DAY, grant: 180 * DAY }
    }
}

const DAY: Duration = Duration::from_secs(86_400);
const LEAST_LIFE: Duration = Duration::from_secs(1);

/// The original's bound.
pub(super) const MOST_ACCESS_LIFE: Duration = DAY;
pub(super) const MOST_GRANT_LIFE: Duration = Duration::from_secs(366 * 86_400);
