//! What a request may look like before anyone asks who sent it.
//!
//! Host, origin, target and repeated headers are judged at once, since a request that fails these must learn nothing.
//! What the request asks for (path, method, media types, declared size) is judged here too, but only told to an
//! authenticated caller: see [`Bounded::settle`].

mod accept;
mod host;

use std::collections::HashSet;

use http::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, ORIGIN, TRANSFER_ENCODING,
};
use http::{Method, Version as HttpVersion};

use crate::edge::alive::is_alive;
use crate::edge::gate::Gate;
use crate::edge::{Accepted, Cause, Config, Head, Rejection, RequestBody};
use crate::oauth::Route;

use host::Hosts;
pub(crate) use host::is_host;

/// The first gate.
pub(crate) struct Limits {
    hosts: Hosts,
    origins: HashSet<String>,
    most_body: usize,
    most_head: usize,
    most_headers: usize,
}

/// A request of a shape the edge serves, for one of its names, from nowhere it must not come from.
pub(crate) struct Bounded {
    head: Head,
    body: RequestBody,
    asks: Result<Verb, Cause>,
}

/// What the MCP endpoint serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Post,
    Get,
    Delete,
}

impl Limits {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            hosts: Hosts::new(&config.requests.hosts),
            origins: config.requests.origins.iter().cloned().collect(),
            most_body: config.requests.most_body_bytes,
            most_head: config.connections.most_head_bytes,
            most_headers: config.connections.most_headers,
        }
    }

    fn asks(&self, head: &Head) -> Result<Verb, Cause> {
        // Both spellings, since a redirect from one to the other costs clients their token or their body.
        if !matches!(head.uri.path(), "/" | "/mcp" | "/mcp/") {
            return Err(Cause::NoSuchPath);
        }
        let verb = match head.method {
            Method::POST => Verb::Post,
            Method::GET => Verb::Get,
            Method::DELETE => Verb::Delete,
            _ => return Err(Cause::MethodNotAllowed { allow: "GET, POST, DELETE, OPTIONS" }),
        };
        let accepted = || accept::Accept::parse(head.headers.get_all(ACCEPT));
        match verb {
            Verb::Post => {
                if !head.headers.get(CONTENT_TYPE).is_some_and(accept::is_json) {
                    return Err(Cause::NotJson);
                }
                if head.headers.get_all(CONTENT_ENCODING).iter().any(|value| value != "identity") {
                    return Err(Cause::Encoded);
                }
                let declared = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
                if declared.is_some_and(|length| length.parse().map_or(true, |length: usize| length > self.most_body)) {
                    return Err(Cause::BodyTooLarge { most: self.most_body });
                }
                if !accepted().any_of(&["application/json", "text/event-stream"]) {
                    return Err(Cause::NotAcceptable);
                }
            }
            Verb::Get => {
                if !accepted().any_of(&["text/event-stream"]) {
                    return Err(Cause::NotAcceptable);
                }
            }
            Verb::Delete => {}
        }
        Ok(verb)
    }
}

impl Gate for Limits {
    type Request = Accepted;
    type Passed = Bounded;

    async fn check(&self, request: Accepted) -> Result<Bounded, Rejection> {
        let (head, body) = request.into_parts();
        // On HTTP/1.1 hyper has counted while it read. On HTTP/2 it counts no fields, and its answer to a long head is
        // followed by a reset that clients take for the outcome: there it allows more, and what is over is told here.
        if head.version == HttpVersion::HTTP_2
            && (head.headers.len() > self.most_headers || size(&head) > self.most_head)
        {
            return Err(Cause::HeadTooLarge.into());
        }
        let known =
            [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS, Method::HEAD, Method::PUT, Method::PATCH];
        if !known.contains(&head.method) {
            return Err(Cause::UnknownMethod.into());
        }
        for name in ONCE {
            let mut values = head.headers.get_all(*name).iter();
            let first = values.next();
            if values.next().is_some() || first.is_some_and(|value| value.to_str().is_err()) {
                return Err(if *name == "host" { Cause::BadHost } else { Cause::RepeatedHeader(name) }.into());
            }
        }
        plain_framing(&head.headers, head.version)?;
        let origin = head.headers.get(ORIGIN);
        // Whoever asks for health knows an address, and maybe no name.
        if !is_alive(head.uri.path()) {
            self.hosts.check(head.face, &head.uri, head.headers.get(HOST), origin.is_some())?;
        }
        if head.uri.path() == "*" {
            return Err(Cause::UnknownMethod.into());
        }
        if !head.uri.path().starts_with('/') {
            return Err(Cause::BadTarget.into());
        }
        // What logs a client in has rules of its own for pages.
        let is_login = Route::of(head.uri.path()).is_some();
        if !is_login && origin.is_some_and(|origin| !origin.to_str().is_ok_and(|origin| self.origins.contains(origin)))
        {
            return Err(Cause::BadOrigin.into());
        }
        let asks = self.asks(&head);
        Ok(Bounded { head, body, asks })
    }
}

impl Bounded {
    pub(in crate::edge) fn head(&self) -> &Head {
        &self.head
    }

    /// What stands in front of the body, and the body: for who answers before anything else is asked.
    pub(in crate::edge) fn into_parts(self) -> (Head, RequestBody) {
        (self.head, self.body)
    }

    /// A request that has passed, its verdict on what it asks for included.
    #[cfg(test)]
    pub(crate) fn for_test(request: http::Request<&'static str>) -> Self {
        let (head, body) = Accepted::for_test(request).into_parts();
        let asks = Limits::new(&Config::default()).asks(&head);
        Self { head, body, asks }
    }

    /// What the request asks for, or why that is not served: for a caller who has been authenticated and counted.
    pub(in crate::edge) fn settle(self) -> Result<(Head, RequestBody, Verb), Cause> {
        Ok((self.head, self.body, self.asks?))
    }
}

/// The target and the fields of a head, each field with the 32 bytes that RFC 9113, 6.5.2 gives it.
fn size(head: &Head) -> usize {
    let authority = head.uri.authority().map_or(0, |authority| authority.as_str().len());
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum::<usize>() + authority + target
}

/// RFC 9112, 6.1: a coding other than `chunked`, or twice, makes the end of the body a matter of opinion.
fn plain_framing(headers: &HeaderMap, version: HttpVersion) -> Result<(), Cause> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if !chunked || codings.next().is_some() || version == HttpVersion::HTTP_10 {
        return Err(Cause::BadTransferEncoding);
    }
    Ok(())
}

/// Two of any of these mean two readings; which one counts must not depend on who reads.
const ONCE: &[&str] = &[
    "host",
    "authorization",
    "origin",
    "content-type",
    "content-length",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

#[cfg(test)]
mod tests;
