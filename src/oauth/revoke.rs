//! A client gives a token back (RFC 7009).

use http::StatusCode;
use http::header::HeaderMap;
use kit::Secret;

use super::caller;
use super::fault::{Fault, Reason};
use super::form::Form;
use super::keeper::Unkept;
use super::reply::{self, Reply};
use super::state::{Change, Denied, Outcome, Presented, Revocation};
use super::token;

/// Reads which token; what kind of token it is, is seen by looking.
pub(super) fn read(headers: &HeaderMap, form: &Form) -> Result<Change, Fault> {
    let client = caller::client(headers, form)?;
    let missing = || Fault::new(Reason::InvalidRequest, "token is missing. Nothing was done.");
    let token = Secret::new(form.get("token").ok_or_else(missing)?);
    Ok(Change::Revoke(Revocation { presented: Presented::of(&token), client }))
}

/// A token that is not there is as one that was given back: 2.2.
pub(super) fn done(outcome: Result<Outcome, Unkept>) -> Reply {
    match outcome {
        Ok(outcome) => {
            if let Outcome::Revoked { grant: Some(grant) } = outcome {
                tracing::info!(%grant, "a client has given a token back");
            }
            reply::empty(StatusCode::OK)
        }
        Err(Unkept::Denied(Denied::AnotherClient)) => {
            reply::fault(&Fault::new(Reason::InvalidClient, "The token is another client's. Nothing was done."))
        }
        Err(unkept) => reply::fault(&token::refused(&unkept)),
    }
}
