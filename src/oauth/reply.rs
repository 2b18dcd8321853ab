//! Answers to programs.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::fault::{Fault, Reason};
use super::route::Route;

pub(super) type Reply = Response<Bytes>;

/// A document that may be kept by nobody, since it has a secret or soon another content.
pub(super) fn json(status: StatusCode, value: &Value) -> Reply {
    let mut reply = Response::new(Bytes::from(value.to_string()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// RFC 6749, 5.2.
pub(super) fn fault(fault: &Fault) -> Reply {
    with_status(fault.status(), fault)
}

pub(super) fn with_status(status: StatusCode, fault: &Fault) -> Reply {
    let body = json!({ "error": fault.reason.word(), "error_description": fault.description });
    let mut reply = json(status, &body);
    if fault.reason == Reason::InvalidClient {
        reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"oauth\""));
    }
    reply
}

pub(super) fn wrong_method(route: Route) -> Reply {
    let told = format!("This method is not served here. Nothing was done. Use one of {}.", route.methods());
    let mut reply = with_status(StatusCode::METHOD_NOT_ALLOWED, &Fault::new(Reason::InvalidRequest, told));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(route.methods()));
    reply
}

/// What a browser asks before a page may.
pub(super) fn preflight(route: Route) -> Reply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(route.methods()));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    reply
}

/// Pages of every origin may read it: it is public, or belongs to whoever could ask for it. No cookie is looked at.
pub(super) fn open_to_pages(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    reply
}

const ALLOWED: &str = "authorization, content-type, accept, mcp-protocol-version";
