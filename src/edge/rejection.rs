//! Every refusal of the edge, and what each one says.
//!
//! A [`Rejection`] is a closed set of causes and, once the request was read, its id. It is rendered in one place into
//! a status, headers and a JSON-RPC error whose text says what happened, what is known of the state and what to do
//! next, with the reference that stands in the log too. Paths, addresses and error chains go to the log alone.

mod rendered;
mod text;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::edge::{Answer, Reference, RequestId};
use crate::oauth::scope;

pub(crate) use rendered::Rendered;

/// Why a request gets no answer from a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rejection {
    pub(crate) cause: Cause,
    /// Known once the envelope has been read; shown as `null` until then, never left out.
    pub(crate) id: Option<RequestId>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cause {
    // Before authentication.
    HeadTooLarge,
    BadHost,
    WrongHost {
        origin: bool,
    },
    BadTarget,
    BadOrigin,
    RepeatedHeader(&'static str),
    BadTransferEncoding,
    UnknownMethod,
    // Who is calling.
    NoCredential,
    BadCredential,
    WrongBackend,
    /// Its operator has disabled the tenant.
    TenantDisabled,
    /// An operator has kept the tool from the credential.
    ToolDenied {
        tool: String,
    },
    /// A login with more scopes would do.
    OutOfScope,
    TooManyFailures {
        again: Duration,
    },
    TooManyRequests {
        again: Duration,
    },
    TooManyProbes {
        again: Duration,
    },
    TooManyLogins {
        again: Duration,
    },
    // What is asked for.
    NoSuchPath,
    MethodNotAllowed {
        allow: &'static str,
    },
    NotJson,
    Encoded,
    NotAcceptable,
    BodyTooLarge {
        most: usize,
    },
    BodyTooSlow,
    BodyBroken,
    // How much of it.
    TenantBusy {
        most: usize,
    },
    TenantFull {
        most: usize,
    },
    TenantStreams {
        most: usize,
    },
    EdgeBusy,
    NotRecorded,
    // What it says.
    Unparsable,
    BadShape(&'static str),
    Repeated {
        member: String,
        place: &'static str,
    },
    HeaderMismatch {
        header: &'static str,
        problem: &'static str,
    },
    UnsupportedVersion {
        requested: String,
    },
    MissingMeta(&'static str),
    BadParams(&'static str),
    MethodRemoved {
        method: &'static str,
    },
    BadLegacyVersion,
    RetiredVersion {
        requested: &'static str,
    },
    SessionsOnly,
    StatelessOnly {
        requested: String,
    },
    // Where it belongs.
    NotBridged,
    NoSession,
    UnknownSession,
    ForeignSession,
    TenantSessions {
        most: usize,
    },
    SessionNotEnded,
    NoWorker,
    // What became of it.
    NotSent,
    /// It did not know the session that the edge keeps with it for stateless clients.
    Forgotten,
    Timeout {
        after: Duration,
    },
    Broken,
    WorkerRefusedUs,
    WorkerAnswerUnusable(&'static str),
    ReplyTooLarge {
        most: u64,
    },
    /// There is no room to hold it: beside the tenant's others if that is where the limit lies, else beside everyone's.
    ReplyUnheld {
        most: Option<usize>,
    },
    WorkerError(StatusCode),
}

/// Whose fault a refusal is decides how loudly it is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Client,
    Worker,
    Us,
}

impl Rejection {
    pub(crate) fn about(cause: Cause, id: Option<&RequestId>) -> Self {
        Self { cause, id: id.cloned() }
    }

    /// The answer a client gets, which may be told where it finds out how to log in.
    pub(crate) fn render(&self, reference: Reference, metadata: Option<&str>) -> Answer {
        let status = self.cause.status();
        let mut answer = Response::new(Full::new(self.body(reference)).map_err(|never| match never {}).boxed_unsync());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.cause.challenge(metadata) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.cause.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.cause.allow() {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.cause.ends_connection() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    /// The JSON-RPC error, as the body of an answer or the last event of a stream that has already begun.
    pub(crate) fn body(&self, reference: Reference) -> Bytes {
        let id = self.id.as_ref().map_or("null", RequestId::raw);
        let message = serde_json::Value::from(format!("{} (ref {reference})", text::of(&self.cause)));
        let mut error = serde_json::json!({ "code": self.cause.code(), "message": message });
        if let (Some(data), Some(error)) = (text::data(&self.cause), error.as_object_mut()) {
            error.insert("data".to_owned(), data);
        }
        // The id is pasted as it came: a number beyond 64 bits must come back digit for digit.
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }

    /// The log's side of the refusal; the request's own line is written elsewhere.
    pub(crate) fn log(&self) {
        if self.cause == Cause::NoWorker {
            // It comes at each request of such a tenant's, and the request's own line says it.
            return;
        }
        match self.cause.fault() {
            Fault::Client => tracing::debug!(cause = ?self.cause, "refused"),
            Fault::Worker => tracing::warn!(cause = ?self.cause, "the worker could not serve"),
            Fault::Us => tracing::error!(cause = ?self.cause, "the edge could not serve"),
        }
    }
}

impl From<Cause> for Rejection {
    fn from(cause: Cause) -> Self {
        Self { cause, id: None }
    }
}

impl Cause {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::BadHost
            | Self::BadTarget
            | Self::RepeatedHeader(_)
            | Self::BadTransferEncoding
            | Self::BodyBroken
            | Self::Unparsable
            | Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::HeaderMismatch { .. }
            | Self::UnsupportedVersion { .. }
            | Self::MissingMeta(_)
            | Self::BadParams(_)
            | Self::BadLegacyVersion
            | Self::RetiredVersion { .. }
            | Self::SessionsOnly
            | Self::StatelessOnly { .. }
            | Self::NoSession => StatusCode::BAD_REQUEST,
            Self::WrongHost { origin: false } => StatusCode::MISDIRECTED_REQUEST,
            Self::WrongHost { origin: true }
            | Self::BadOrigin
            | Self::WrongBackend
            | Self::TenantDisabled
            | Self::ToolDenied { .. }
            | Self::OutOfScope
            | Self::ForeignSession => StatusCode::FORBIDDEN,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UnknownMethod | Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoCredential | Self::BadCredential => StatusCode::UNAUTHORIZED,
            Self::TooManyFailures { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyProbes { .. }
            | Self::TooManyLogins { .. }
            | Self::TenantBusy { .. }
            | Self::TenantFull { .. }
            | Self::TenantStreams { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::NoSuchPath | Self::MethodRemoved { .. } | Self::NotBridged | Self::UnknownSession => {
                StatusCode::NOT_FOUND
            }
            Self::NotJson | Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::EdgeBusy
            | Self::NotRecorded
            | Self::TenantSessions { .. }
            | Self::NoWorker
            | Self::NotSent
            | Self::SessionNotEnded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Broken
            | Self::Forgotten
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            // None after which a client sends it again by itself.
            | Self::ReplyUnheld { .. } => StatusCode::BAD_GATEWAY,
            Self::WorkerError(status) => *status,
        }
    }

    /// The specification's codes where it has one. Ours lie outside the reserved range: -31000 minus the status.
    pub(crate) fn code(&self) -> i64 {
        match self {
            Self::Unparsable => -32700,
            Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::BadLegacyVersion
            // Clients that know both eras take this one for a server of the older era, and any of the newer for its own.
            | Self::SessionsOnly
            | Self::NoSession
            | Self::ForeignSession => -32600,
            // What the sessionful revisions show for an `initialize` with a version that is not served.
            Self::MissingMeta(_) | Self::BadParams(_) | Self::RetiredVersion { .. } => -32602,
            Self::MethodRemoved { .. } | Self::NotBridged => -32601,
            // Clients know this one as "open a new session".
            Self::UnknownSession => -32001,
            Self::HeaderMismatch { .. } => -32020,
            Self::UnsupportedVersion { .. } | Self::StatelessOnly { .. } => -32022,
            Self::HeadTooLarge
            | Self::BadHost
            | Self::WrongHost { .. }
            | Self::BadTarget
            | Self::BadOrigin
            | Self::RepeatedHeader(_)
            | Self::BadTransferEncoding
            | Self::UnknownMethod
            | Self::NoCredential
            | Self::BadCredential
            | Self::WrongBackend
            | Self::TenantDisabled
            | Self::ToolDenied { .. }
            | Self::OutOfScope
            | Self::TooManyFailures { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyProbes { .. }
            | Self::TooManyLogins { .. }
            | Self::NoSuchPath
            | Self::MethodNotAllowed { .. }
            | Self::NotJson
            | Self::Encoded
            | Self::NotAcceptable
            | Self::BodyTooLarge { .. }
            | Self::BodyTooSlow
            | Self::BodyBroken
            | Self::TenantBusy { .. }
            | Self::TenantFull { .. }
            | Self::TenantStreams { .. }
            | Self::EdgeBusy
            | Self::NotRecorded
            | Self::TenantSessions { .. }
            | Self::SessionNotEnded
            | Self::NoWorker
            | Self::NotSent
            | Self::Forgotten
            | Self::Timeout { .. }
            | Self::Broken
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            | Self::ReplyUnheld { .. }
            | Self::WorkerError(_) => OWN_CODES - i64::from(self.status().as_u16()),
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::EdgeBusy | Self::NotRecorded | Self::SessionNotEnded | Self::ReplyUnheld { most: None } => Fault::Us,
            Self::NoWorker
            | Self::NotSent
            | Self::Forgotten
            | Self::Timeout { .. }
            | Self::Broken
            | Self::WorkerRefusedUs
            | Self::WorkerAnswerUnusable(_)
            | Self::ReplyTooLarge { .. }
            | Self::WorkerError(_) => Fault::Worker,
            Self::HeadTooLarge
            | Self::BadHost
            | Self::WrongHost { .. }
            | Self::BadTarget
            | Self::BadOrigin
            | Self::RepeatedHeader(_)
            | Self::BadTransferEncoding
            | Self::UnknownMethod
            | Self::NoCredential
            | Self::BadCredential
            | Self::WrongBackend
            | Self::TenantDisabled
            | Self::ToolDenied { .. }
            | Self::OutOfScope
            | Self::TooManyFailures { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyProbes { .. }
            | Self::TooManyLogins { .. }
            | Self::NoSuchPath
            | Self::MethodNotAllowed { .. }
            | Self::NotJson
            | Self::Encoded
            | Self::NotAcceptable
            | Self::BodyTooLarge { .. }
            | Self::BodyTooSlow
            | Self::BodyBroken
            | Self::TenantBusy { .. }
            | Self::TenantFull { .. }
            | Self::TenantSessions { .. }
            | Self::TenantStreams { .. }
            | Self::ReplyUnheld { most: Some(_) }
            | Self::Unparsable
            | Self::BadShape(_)
            | Self::Repeated { .. }
            | Self::HeaderMismatch { .. }
            | Self::UnsupportedVersion { .. }
            | Self::MissingMeta(_)
            | Self::BadParams(_)
            | Self::MethodRemoved { .. }
            | Self::BadLegacyVersion
            | Self::RetiredVersion { .. }
            | Self::SessionsOnly
            | Self::StatelessOnly { .. }
            | Self::NotBridged
            | Self::NoSession
            | Self::UnknownSession
            | Self::ForeignSession => Fault::Client,
        }
    }

    fn challenge(&self, metadata: Option<&str>) -> Option<HeaderValue> {
        // RFC 6750, 3.1: no error code when the request carried no credential at all.
        let error = if *self == Self::BadCredential {
            Some(r#"error="invalid_token""#.to_owned())
        } else if *self == Self::OutOfScope {
            Some(r#"error="insufficient_scope""#.to_owned())
        } else if *self == Self::NoCredential {
            None
        } else {
            return None;
        };
        // RFC 9728, 5.1. The address is the configuration's, and has no byte that could end the quotes.
        let place = metadata.map(|address| format!(r#"resource_metadata="{address}""#));
        let wanted = place.is_some() || *self == Self::OutOfScope;
        let wanted = wanted.then(|| format!(r#"scope="{}""#, scope::MCP));
        let said: Vec<_> = error.into_iter().chain(place).chain(wanted).collect();
        let challenge = if said.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", said.join(", ")) };
        HeaderValue::from_str(&challenge).ok()
    }

    fn allow(&self) -> Option<&'static str> {
        if let Self::MethodNotAllowed { allow } = self {
            Some(allow)
        } else {
            (*self == Self::UnknownMethod).then_some("GET, POST, DELETE, OPTIONS")
        }
    }

    fn retry_after(&self) -> Option<u64> {
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
    fn ends_connection(&self) -> bool {
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

const OWN_CODES: i64 = -31_000;

/// A worker is usually back within a minute, and a slot is free much sooner.
const RETRY_SECONDS: u64 = 2;

/// A session ends when its client says so or after a long pause.
const SESSION_RETRY_SECONDS: u64 = 30;

#[cfg(test)]
mod tests {
    use super::{Cause, Rejection};
    use crate::edge::{Reference, RequestId};

    #[test]
    fn the_id_comes_back_digit_for_digit() {
        let id = RequestId::parse("123456789012345678901234567890").expect("an id");
        let body = Rejection::about(Cause::Broken, Some(&id)).body(Reference::for_test());
        let text = String::from_utf8(body.to_vec()).expect("text");
        assert!(text.contains(r#""id":123456789012345678901234567890,"#), "{text}");
        assert!(text.contains("not repeated"), "{text}");
    }

    #[test]
    fn an_unknown_id_is_null_and_not_left_out() {
        let body = Rejection::from(Cause::NoCredential).body(Reference::for_test());
        let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(value.get("id"), Some(&serde_json::Value::Null));
        assert_eq!(value["error"]["code"], -31401);
    }

    #[test]
    fn the_challenge_names_an_error_only_when_a_token_was_sent() {
        let challenge = |cause: Cause| {
            let answer = Rejection::from(cause).render(Reference::for_test(), None);
            answer.headers()["www-authenticate"].to_str().expect("text").to_owned()
        };
        assert_eq!(challenge(Cause::NoCredential), "Bearer");
        assert_eq!(challenge(Cause::BadCredential), r#"Bearer error="invalid_token""#);
        assert_eq!(challenge(Cause::OutOfScope), r#"Bearer error="insufficient_scope", scope="mcp""#);
    }
}
