//! What a request says: one bounded reading of its body, which is then forwarded byte for byte.
//!
//! The members that the edge decides by are read here and nowhere else; duplicates among them are refused, since the
//! worker might read the other one. Everything inside `arguments` is the worker's business.

mod arrive;
mod era;
mod granted;
mod members;

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tracing::Span;

use crate::audit::Stated;
use crate::audit::line::masked;
use crate::edge::gate::Gate;
use crate::edge::{Admitted, Cause, Config, Head, Permit, Rejection, RequestId, Reserved, Verb, Version};
use crate::identity::Principal;

pub(crate) use members::Members;

/// The fifth gate.
pub(crate) struct Envelope {
    arrival: Arrival,
}

/// How a body must arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) most: usize,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
    pub(crate) least_rate: u64,
}

/// A request that the edge has understood.
pub(crate) struct Parsed {
    pub(in crate::edge) head: Head,
    pub(in crate::edge) principal: Principal,
    pub(in crate::edge) permit: Permit,
    pub(in crate::edge) call: Call,
    sealed: Sealed,
}

/// What is asked of the worker.
pub(crate) enum Call {
    Message(Message),
    /// A legacy GET: the session's own stream.
    Stream,
    /// A legacy DELETE: the end of the session.
    End,
}

/// One JSON-RPC message, its bytes as they came.
pub(crate) struct Message {
    pub(crate) body: Bytes,
    pub(crate) reserved: Reserved,
    pub(crate) kind: Kind,
    pub(crate) era: Era,
    /// Of a legacy `notifications/cancelled`: which request it means.
    pub(crate) cancels: Option<RequestId>,
    /// Of an `initialize`: the revision from before ours that it asks for.
    pub(crate) retired: Option<&'static str>,
    /// Of an `initialize`: what the client says that it is.
    pub(crate) stated: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request { id: RequestId, method: String },
    Notification { method: String },
    Response,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Stateless: each request carries all there is to know.
    Modern,
    /// `initialize`: the opening of a session.
    Opening,
    /// Within a session.
    Legacy,
}

/// Keeps [`Parsed`] from being made elsewhere.
struct Sealed;

impl Envelope {
    pub(crate) fn new(config: &Config) -> Self {
        let requests = &config.requests;
        Self {
            arrival: Arrival {
                most: requests.most_body_bytes,
                idle: requests.body_idle,
                total: requests.body_total,
                least_rate: requests.body_least_rate,
            },
        }
    }
}

impl Gate for Envelope {
    type Request = Admitted;
    type Passed = Parsed;

    async fn check(&self, request: Admitted) -> Result<Parsed, Rejection> {
        let (head, body, verb, principal, permit) = request.into_parts();
        let call = match verb {
            Verb::Post => {
                let mut reserved = permit.reserve_nothing();
                let began = kit::clock::now();
                let bytes = arrive::read(body, self.arrival, &mut reserved).await?;
                head.notes.has_body(bytes.len(), kit::clock::now().saturating_duration_since(began));
                Call::Message(read(&head, &principal, bytes, reserved)?)
            }
            Verb::Get | Verb::Delete => {
                if verb == Verb::Get {
                    head.notes.asks_for_stream()
                } else {
                    head.notes.asks_for_end()
                }
                era::sessionful(&head.headers)?;
                granted::enters(&principal)?;
                head.notes.speaks(Era::Legacy);
                if verb == Verb::Get { Call::Stream } else { Call::End }
            }
        };
        let called = match &call {
            Call::Message(message) => message.kind.method().unwrap_or("response"),
            Call::Stream => "stream",
            Call::End => "end",
        };
        // The client's text, so bounded before it stands in a log line.
        Span::current().record("call", masked(called, MOST_LOGGED));
        Ok(Parsed { head, principal, permit, call, sealed: Sealed })
    }
}

impl Parsed {
    /// The id of the request, for a refusal that knows it.
    pub(in crate::edge) fn id(&self) -> Option<&RequestId> {
        match &self.call {
            Call::Message(message) => message.kind.id(),
            Call::Stream | Call::End => None,
        }
    }

    /// A request that has passed all gates so far; a POST carries a message of this kind and era.
    #[cfg(test)]
    pub(crate) fn for_test(request: http::Request<()>, principal: Principal, kind: Kind, era: Era) -> Self {
        let permit = Permit::for_test();
        let call = match *request.method() {
            http::Method::POST => {
                let reserved = permit.reserve_nothing();
                Call::Message(Message {
                    body: Bytes::new(),
                    reserved,
                    kind,
                    era,
                    cancels: None,
                    retired: None,
                    stated: None,
                })
            }
            http::Method::GET => Call::Stream,
            _ => Call::End,
        };
        let (head, _) = crate::edge::Accepted::for_test(request.map(|()| "")).into_parts();
        Self { head, principal, permit, call, sealed: Sealed }
    }

    pub(in crate::edge) fn into_parts(self) -> (Head, Principal, Permit, Call) {
        let Sealed = self.sealed;
        (self.head, self.principal, self.permit, self.call)
    }
}

impl Kind {
    pub(crate) fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request { id, .. } => Some(id),
            Self::Notification { .. } | Self::Response => None,
        }
    }

    pub(crate) fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method } => Some(method),
            Self::Response => None,
        }
    }
}

/// Reads the envelope in `bytes`.
fn read(head: &Head, principal: &Principal, bytes: Bytes, reserved: Reserved) -> Result<Message, Rejection> {
    let top = top(&bytes)?;
    let id = top
        .get("id")
        .map(|raw| RequestId::parse(raw.get()).ok_or(Cause::BadShape("its id is no string and no integer")));
    // A refusal names the id as soon as there is a sound one, whatever else is wrong.
    let known = id.as_ref().and_then(|id| id.as_ref().ok().cloned());
    let fail = |cause| Rejection::about(cause, known.as_ref());
    if let Some(member) = top.repeated() {
        // Which of two ids was meant is not for us to choose.
        let id = known.as_ref().filter(|_| member != "id");
        return Err(Rejection::about(Cause::Repeated { member: member.to_owned(), place: "the message" }, id));
    }
    let id = id.transpose().map_err(fail)?;
    if top.text("jsonrpc").as_deref() != Some("2.0") {
        return Err(fail(Cause::BadShape("jsonrpc is not \"2.0\"")));
    }
    let kind = kind(&top, id).map_err(fail)?;
    head.notes.asks(kind.method());
    if let (Some(record), Some(method)) = (head.notes.record(), kind.method()) {
        record.asks(method);
    }
    let params = members_of(top.get("params"), "params").map_err(fail)?;
    let meta = members_of(params.as_ref().and_then(|params| params.get("_meta")), "params._meta").map_err(fail)?;
    let era =
        era::judge(&era::Said { headers: &head.headers, kind: &kind, params: params.as_ref(), meta: meta.as_ref() })
            .map_err(fail)?;
    head.notes.speaks(era);
    if kind.method() == Some("tools/call")
        && let Some(tool) = params.as_ref().and_then(|params| params.text("name"))
    {
        head.notes.names_tool(&tool);
    }
    let of_params = |name| params.as_ref().and_then(|params| params.get(name));
    let client = of_params("clientInfo").or_else(|| meta.as_ref()?.get(CLIENT_MEMBER));
    if let Some(record) = head.notes.record() {
        client.inspect(|client| record.states(client.get()));
        of_params("arguments").inspect(|arguments| record.has_arguments(arguments.get()));
    }
    granted::check(principal, &top, &kind, params.as_ref()).map_err(fail)?;
    let cancels = (kind.method() == Some("notifications/cancelled"))
        .then(|| params.as_ref()?.get("requestId").and_then(|raw| RequestId::parse(raw.get())))
        .flatten();
    let asked = (era == Era::Opening).then(|| params.as_ref()?.text("protocolVersion")).flatten();
    let retired = asked.as_deref().and_then(Version::retired);
    let stated = client.filter(|_| era == Era::Opening).and_then(|client| Stated::of(client.get()));
    let stated = stated.map(|stated| stated.to_string());
    Ok(Message { body: bytes.clone(), reserved, kind, era, cancels, retired, stated })
}

fn top(bytes: &[u8]) -> Result<Members<'_>, Cause> {
    // RawValue checks the whole text once and without recursion.
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_fault| Cause::Unparsable)?;
    if is_too_deep(raw.get()) {
        return Err(Cause::BadShape("it is nested too deeply"));
    }
    match raw.get().bytes().next() {
        Some(b'{') => Members::try_read(raw).map_err(Cause::BadShape),
        Some(b'[') => Err(Cause::BadShape("batches are not served in any protocol version")),
        _ => Err(Cause::BadShape("it is no object")),
    }
}

/// Whether arrays and objects in a valid JSON text lie deeper than a worker's parser can be trusted to follow.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > MOST_DEPTH {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

fn kind(top: &Members<'_>, id: Option<RequestId>) -> Result<Kind, Cause> {
    let answers = top.get("result").is_some() || top.get("error").is_some();
    if top.get("result").is_some() && top.get("error").is_some() {
        return Err(Cause::BadShape("it has both a result and an error"));
    }
    if top.get("params").is_some_and(|params| !params.get().starts_with('{')) {
        return Err(Cause::BadShape("its params are no object"));
    }
    match (top.get("method"), id) {
        (Some(_), _) if answers => Err(Cause::BadShape("it has both a method and a result")),
        (Some(_), id) => {
            let method = top.text("method").ok_or(Cause::BadShape("its method is no text"))?;
            Ok(id.map_or(Kind::Notification { method: method.clone() }, |id| Kind::Request { id, method }))
        }
        (None, Some(_)) if answers => Ok(Kind::Response),
        (None, _) => Err(Cause::BadShape("it has no method")),
    }
}

/// The members of an object; a value of another kind has none and is the worker's to refuse.
fn members_of<'a>(raw: Option<&'a RawValue>, place: &'static str) -> Result<Option<Members<'a>>, Cause> {
    let Some(raw) = raw.filter(|raw| raw.get().starts_with('{')) else { return Ok(None) };
    let members = Members::try_read(raw).map_err(Cause::BadShape)?;
    match members.repeated() {
        Some(member) => Err(Cause::Repeated { member: member.to_owned(), place }),
        None => Ok(Some(members)),
    }
}

/// What common parsers take, serde_json's among them.
const MOST_DEPTH: usize = 127;

/// Where a client of the modern era says what it is.
const CLIENT_MEMBER: &str = "io.modelcontextprotocol/clientInfo";

/// Longer than any method's name.
const MOST_LOGGED: usize = 64;

#[cfg(test)]
mod tests;
