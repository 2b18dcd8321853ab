//! A client brings its code or its refresh token and gets tokens.

use http::StatusCode;
use http::header::HeaderMap;
use kit::Secret;
use serde_json::json;

use super::ask::target;
use super::event::{Event, What};
use super::fault::{Fault, Reason};
use super::form::Form;
use super::keeper::Unkept;
use super::reply::{self, Reply};
use super::state::{
    Challenge, Change, ClientId, Denied, Fresh, FreshRefresh, Outcome, Presented, Redemption, Redirect, Rotation,
    grant_id,
};
use super::{PublicUrl, Settings, caller, scope};
use crate::store::Digest;

/// A step to be done, and what is handed out once it is.
pub(super) struct Trade {
    pub(super) change: Change,
    access: Secret,
    refresh: Secret,
}

impl Trade {
    /// Reads what a client asks for.
    pub(super) fn read<'a>(
        headers: &HeaderMap,
        form: &Form,
        settings: &Settings,
        resources: impl Iterator<Item = &'a PublicUrl> + Clone,
    ) -> Result<Self, Fault> {
        let client = caller::client(headers, form)?;
        target(form, resources)?;
        let resource = Some(settings.public_url.as_str().to_owned());
        let access = Fresh::access().map_err(|_none| unmade())?;
        match form.get("grant_type") {
            Some("authorization_code") => {
                let client = client.ok_or_else(|| missing("client_id"))?;
                let code = form.get("code").ok_or_else(|| missing("code"))?;
                let verifier = form.get("code_verifier").ok_or_else(|| missing("code_verifier"))?;
                let proof = Challenge::of_verifier(verifier)
                    .map_err(|fault| Fault::new(Reason::InvalidGrant, format!("{fault}.")))?;
                let redirect = form.get("redirect_uri").map(Redirect::parse).transpose();
                let redirect = redirect.map_err(|fault| Fault::new(Reason::InvalidGrant, format!("{fault}.")))?;
                let refresh = FreshRefresh::first().map_err(|_none| unmade())?;
                let change = Change::Redeem(Redemption {
                    code: Digest::of(code),
                    client,
                    redirect,
                    proof,
                    resource,
                    grant: grant_id().map_err(|_none| unmade())?,
                    access: access.digest,
                    refresh: Some(refresh.digests),
                    lives: settings.lives,
                });
                Ok(Self { change, access: access.secret, refresh: refresh.secret })
            }
            Some("refresh_token") => {
                let presented = Secret::new(form.get("refresh_token").ok_or_else(|| missing("refresh_token"))?);
                let scopes = form.get("scope").map(|asked| scope::asked(Some(asked)).ok_or_else(wider)).transpose()?;
                let next = FreshRefresh::after(&presented).map_err(|_none| unmade())?;
                let change = Change::Refresh(Rotation {
                    presented: Presented::of(&presented),
                    client,
                    scopes,
                    resource,
                    access: access.digest,
                    next: next.digests,
                    lives: settings.lives,
                });
                Ok(Self { change, access: access.secret, refresh: next.secret })
            }
            Some(_) => Err(Fault::new(
                Reason::UnsupportedGrantType,
                "grant_type must be authorization_code or refresh_token. Nothing was done.",
            )),
            None => Err(missing("grant_type")),
        }
    }

    /// Which client says that it brings it.
    pub(super) fn client(&self) -> Option<&ClientId> {
        match &self.change {
            Change::Redeem(redemption) => Some(&redemption.client),
            Change::Refresh(rotation) => rotation.client.as_ref(),
            Change::Register(_) | Change::Consent(_) | Change::Revoke(_) => None,
        }
    }

    /// What it was for a record, once it is done.
    pub(super) fn event(&self, outcome: &Outcome) -> Option<Event> {
        let Outcome::Granted { grant, tenant, .. } = outcome else { return None };
        let what = if matches!(self.change, Change::Redeem(_)) { What::Issued } else { What::Renewed };
        let (tenant, grant) = (Some(tenant.clone()), Some(grant.clone()));
        Some(Event { what, tenant, grant, client: self.client().cloned() })
    }

    /// What the client gets for it.
    pub(super) fn done(self, outcome: Outcome) -> Result<Reply, Fault> {
        let Outcome::Granted { grant, tenant, scopes, expires_in, refresh } = outcome else { return Err(unmade()) };
        tracing::info!(%grant, %tenant, "a client has got tokens");
        let mut body = json!({
            "access_token": self.access.expose(),
            "token_type": "Bearer",
            "expires_in": expires_in.as_secs(),
            "scope": scopes.to_string(),
        });
        if let (true, Some(body)) = (refresh, body.as_object_mut()) {
            body.insert("refresh_token".to_owned(), self.refresh.expose().into());
        }
        Ok(reply::json(StatusCode::OK, &body))
    }
}

/// What a client is told whose step was not done.
pub(super) fn refused(unkept: &Unkept) -> Fault {
    let (error, told) = match unkept {
        Unkept::Denied(denied) => return denied_fault(*denied),
        Unkept::Busy { .. } => (
            Reason::TemporarilyUnavailable,
            "Too many others ask at the moment. Nothing was done. Try again in a second.",
        ),
        Unkept::Late { .. } => (
            Reason::TemporarilyUnavailable,
            "The server does not know whether it was done. Try again; if that is refused, log in again.",
        ),
        Unkept::Fault => (Reason::ServerError, "The server cannot keep it at the moment. Tell the operator."),
    };
    if let Unkept::Late { .. } | Unkept::Fault = unkept {
        tracing::error!(fault = %unkept, "a change of the OAuth state did not come about");
    }
    Fault::new(error, told)
}

fn denied_fault(denied: Denied) -> Fault {
    let grant = |told: &str| Fault::new(Reason::InvalidGrant, told);
    match denied {
        Denied::UnknownClient => caller::unknown(),
        Denied::UnknownCode => grant("The code is unknown or has expired. Log in again."),
        Denied::SpentCode => grant("The code was used before, so what it gave has been revoked. Log in again."),
        Denied::AnotherClient => grant("It was given to another client. Log in again."),
        Denied::AnotherRedirect | Denied::ForeignRedirect => {
            grant("redirect_uri is not the one that the code was asked for with. Log in again.")
        }
        Denied::WrongVerifier => grant("code_verifier does not answer the code's challenge. Log in again."),
        Denied::UnknownRefresh => grant("The refresh token is unknown, expired or revoked. Log in again."),
        Denied::SpentRefresh => {
            grant("The refresh token was used before, so all tokens of this login have been revoked. Log in again.")
        }
        Denied::AnotherResource | Denied::LongResource { .. } => {
            Fault::new(Reason::InvalidTarget, "It was given for another resource. Log in again.")
        }
        Denied::WiderScopes => wider(),
        Denied::Redirects { .. } => {
            Fault::new(Reason::InvalidRedirectUri, format!("{denied}. Nothing was registered."))
        }
        Denied::Full(_) => {
            Fault::new(Reason::TemporarilyUnavailable, format!("{denied}. Nothing was done. Try again later."))
        }
        Denied::Taken => unmade(),
        Denied::UnknownInvite
        | Denied::SpentInvite
        | Denied::ExpiredInvite
        | Denied::InviteForAnotherClient
        | Denied::InviteForAnotherRedirect => grant("The invite code does not count."),
    }
}

fn wider() -> Fault {
    Fault::new(
        Reason::InvalidScope,
        "More is asked for than was granted. Nothing was done. Leave scope out, or log in again.",
    )
}

fn missing(name: &str) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("{name} is missing. Nothing was done."))
}

fn unmade() -> Fault {
    Fault::new(Reason::ServerError, "The server could not make a token. Nothing was done. Try again.")
}
