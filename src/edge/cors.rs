//! What a browser must be told before and beside an answer.
//!
//! A preflight carries no credential, so it is answered before authentication, and only for a listed origin. Every
//! answer to a listed origin names it, refusals too, or a page could not read why. Never a wildcard, never credentials.

use std::collections::HashSet;
use std::ops::ControlFlow;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use http::{Method, Response, StatusCode};

use crate::edge::interceptor::{self, Answering, Interceptor};
use crate::edge::{Answer, Bounded, Head, empty};

/// The origins whose pages may call.
#[derive(Clone)]
pub(crate) struct Cors(HashSet<String>);

impl Cors {
    pub(crate) fn new(origins: &[String]) -> Self {
        Self(origins.iter().cloned().collect())
    }

    /// The origin of a request, if it is a listed one.
    pub(crate) fn listed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        origin.to_str().is_ok_and(|origin| self.0.contains(origin)).then(|| origin.clone())
    }
}

/// The answer to a preflight, if the request is one.
fn preflight(head: &Head) -> Option<Answer> {
    let asks = head.headers.contains_key(ORIGIN) && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if head.method != Method::OPTIONS || !asks {
        return None;
    }
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    Some(answer)
}

/// Names the origin in an answer to it.
pub(crate) fn name(answer: &mut Answer, origin: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

/// Answers preflights on the way; everything else goes on.
#[derive(Clone, Copy)]
pub(crate) struct Preflights;

impl Interceptor for Preflights {
    fn intercept(&self, request: Bounded) -> ControlFlow<Answering, Bounded> {
        match preflight(request.head()) {
            Some(answer) => ControlFlow::Break(interceptor::at_once(Ok(answer))),
            None => ControlFlow::Continue(request),
        }
    }
}

const ALLOWED: &str =
    "authorization, content-type, accept, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id";
const EXPOSED: &str = "mcp-session-id, www-authenticate, retry-after";
