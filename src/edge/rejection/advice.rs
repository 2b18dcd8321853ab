//! What the head of a refusal tells a client to do: log in, ask otherwise, come back, or connect anew.

use http::StatusCode;
use http::header::HeaderValue;

use super::Cause;
use crate::oauth::{Advice, scope};

impl Cause {
    pub(super) fn challenge(&self, login: Option<&Advice>) -> Option<HeaderValue> {
        // RFC 6750, 3.1: no error code when the request carried no credential at all.
        let error = if *self == Self::BadCredential {
            Some(r#"error="invalid_token""#.to_owned())
        } else if matches!(self, Self::OutOfScope | Self::LacksScopes(_)) {
            Some(r#"error="insufficient_scope""#.to_owned())
        } else if *self == Self::NoCredential {
            None
        } else {
            return None;
        };
        // RFC 9728, 5.1. The address is the configuration's, and has no byte that could end the quotes.
        let place = login.map(|login| format!(r#"resource_metadata="{}""#, login.metadata));
        let wanted = if let Self::LacksScopes(wanted) = self {
            Some(wanted.join(" "))
        } else if let Some(login) = login {
            login.scope.clone()
        } else {
            (*self == Self::OutOfScope).then(|| scope::MCP.to_owned())
        };
        let wanted = wanted.map(|wanted| format!(r#"scope="{wanted}""#));
        let said: Vec<_> = error.into_iter().chain(place).chain(wanted).collect();
        let challenge = if said.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", said.join(", ")) };
        HeaderValue::from_str(&challenge).ok()
    }

    pub(super) fn allow(&self) -> Option<&'static str> {
        if let Self::MethodNotAllowed { allow } = self {
            Some(allow)
        } else {
            (*self == Self::UnknownMethod).then_some("GET, POST, DELETE, OPTIONS")
        }
    }

    pub(super) fn retry_after(&self) -> Option<u64> {
        if let Self::TooManyFailures { again }
        | Self::TooManyRequests { again }
        | Self::TooManyProbes { again }
        | Self::TooManyLogins { again } = self
        {
            return Some(again.as_secs().saturating_add(1));
        }
        // Not for what only an operator can change.
        if let Self::TenantSessions { .. } = self {
            return Some(SESSION_RETRY_SECONDS);
        }
        let passes = matches!(
            self,
            Self::TenantBusy { .. }
                | Self::TenantFull { .. }
                | Self::TenantStreams { .. }
                | Self::EdgeBusy
                | Self::NotSent
        ) || *self == Self::WorkerError(StatusCode::SERVICE_UNAVAILABLE);
        passes.then_some(RETRY_SECONDS)
    }

    /// After these the rest of the connection's bytes cannot be trusted to begin with a request.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(
            self,
            Self::BadHost
                | Self::BadTarget
                | Self::RepeatedHeader(_)
                | Self::BadTransferEncoding
                | Self::UnknownMethod
                | Self::BodyTooLarge { .. }
                | Self::BodyTooSlow
                | Self::BodyBroken
        )
    }
}

/// A worker is usually back within a minute, and a slot is free much sooner.
const RETRY_SECONDS: u64 = 2;

/// A session ends when its client says so or after a long pause.
const SESSION_RETRY_SECONDS: u64 = 30;
