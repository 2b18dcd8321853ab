//! Every refusal of the edge, and what each one says.
//!
//! A [`Rejection`] is a closed set of causes and, once the request was read, its id. It is rendered in one place into
//! a status, headers and a JSON-RPC error whose text says what happened, what is known of the state and what to do
//! next, with the reference that stands in the log too. Paths, addresses and error chains go to the log alone.

mod advice;
mod cause;
mod codes;
mod fault;
mod rendered;
mod text;

use bytes::Bytes;
use http::Response;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http_body_util::{BodyExt, Full};

use crate::edge::{Answer, Reference, RequestId};
use crate::oauth::Advice;
use fault::Fault;

pub(crate) use cause::Cause;
pub(crate) use rendered::Rendered;

/// Why a request gets no answer from a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rejection {
    pub(crate) cause: Cause,
    /// Known once the envelope has been read; shown as `null` until then, never left out.
    pub(crate) id: Option<RequestId>,
}

impl Rejection {
    pub(crate) fn about(cause: Cause, id: Option<&RequestId>) -> Self {
        Self { cause, id: id.cloned() }
    }

    /// The answer a client gets, which may be told how to log in.
    pub(crate) fn render(&self, reference: Reference, login: Option<&Advice>) -> Answer {
        let status = self.cause.status();
        let mut answer = Response::new(Full::new(self.body(reference)).map_err(|never| match never {}).boxed_unsync());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.cause.challenge(login) {
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
        let wanted = vec!["one".to_owned(), "two".to_owned()];
        let told = challenge(Cause::LacksScopes(wanted));
        assert_eq!(told, r#"Bearer error="insufficient_scope", scope="one two""#);
    }
}
