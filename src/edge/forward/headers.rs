//! Which headers pass between client and worker: those named here and no other.

use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{Method, Request};

use crate::edge::{Call, Cause, Era, Head, Reference, Session};
use crate::identity::Principal;
use crate::worker::Upstream;

use super::answer::Shape;
use super::carried::Carried;

/// The request as the worker gets it.
pub(super) fn request(
    head: &Head,
    principal: &Principal,
    call: Call,
    upstream: &Upstream,
    session: Option<&Session>,
) -> Result<Request<Carried>, Cause> {
    let mut headers = addressed(head.reference, principal, upstream, session)?;
    let (method, body) = match call {
        Call::Message(message) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            if message.era == Era::Modern {
                mirrored(&head.headers, &mut headers);
            }
            (Method::POST, Carried::new(message.body, message.reserved))
        }
        Call::Stream => {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(last) = head.headers.get(LAST_EVENT) {
                headers.insert(LAST_EVENT, last.clone());
            }
            (Method::GET, Carried::nothing())
        }
        Call::End => (Method::DELETE, Carried::nothing()),
    };
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = upstream.terms.path.uri();
    *request.headers_mut() = headers;
    Ok(request)
}

/// What stands on every request for a tenant.
pub(super) fn addressed(
    reference: Reference,
    principal: &Principal,
    upstream: &Upstream,
    session: Option<&Session>,
) -> Result<HeaderMap, Cause> {
    let mut headers = opening(upstream)?;
    if upstream.sends_tenant {
        headers.insert(kit::header::TENANT, ours(&kit::header::labelled(principal.tenant()))?);
        headers.insert(kit::header::REFERENCE, ours(&reference.to_string())?);
    }
    if let Some(session) = session {
        within(session, &mut headers)?;
    }
    Ok(headers)
}

/// The headers that end a worker's own session for nobody.
pub(super) fn departing(upstream: &Upstream, session: &Session) -> Result<HeaderMap, Cause> {
    let mut headers = opening(upstream)?;
    within(session, &mut headers)?;
    Ok(headers)
}

/// What every worker is told: that it is meant, and that we may.
fn opening(upstream: &Upstream) -> Result<HeaderMap, Cause> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, ours(&upstream.address.to_string())?);
    let mut bearer = ours(&format!("Bearer {}", upstream.bearer.expose()))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    Ok(headers)
}

fn within(session: &Session, headers: &mut HeaderMap) -> Result<(), Cause> {
    headers.insert(VERSION, HeaderValue::from_static(session.version.as_str()));
    if let Some(id) = &session.upstream {
        let mut id = ours(id)?;
        id.set_sensitive(true);
        headers.insert(SESSION, id);
    }
    Ok(())
}

/// The headers of an answer as the client gets them; the public session id is added by who knows it.
pub(super) fn answer(worker: &HeaderMap, shape: Shape) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let cache = match shape {
        Shape::Events => {
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            "no-cache, no-transform"
        }
        Shape::Json | Shape::Nothing => "no-store",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    if shape != Shape::Nothing
        && let Some(kind) = worker.get(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, kind.clone());
    }
    if let Some(after) = worker.get(RETRY_AFTER) {
        headers.insert(RETRY_AFTER, after.clone());
    }
    headers
}

/// What a modern client repeats of its body, and what only the worker can check.
fn mirrored(client: &HeaderMap, worker: &mut HeaderMap) {
    for (name, value) in client {
        let known = [VERSION, "mcp-method", "mcp-name"].contains(&name.as_str());
        if known || name.as_str().starts_with("mcp-param-") {
            worker.append(HeaderName::clone(name), value.clone());
        }
    }
}

fn ours(text: &str) -> Result<HeaderValue, Cause> {
    HeaderValue::from_str(text).map_err(|_invalid| {
        tracing::error!("a worker's header cannot be written; its token holds other than ASCII");
        Cause::NoWorker
    })
}

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
