//! What a worker of sessions says, as a modern client is to hear it.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use serde_json::value::RawValue;

use crate::edge::forward::catalogue;
use crate::edge::{Cause, Members, RequestId, Version};

use super::ask::{Ask, Wants};
use super::level::Level;
use super::patch::Patch;
use super::session::Session;
use super::unmarked::unmark;
use super::wishes::Change;

/// One message of the worker's, judged within the exchange of one request.
pub(super) enum Said {
    /// The answer, and the status that a modern client expects with it.
    Answer(StatusCode, Bytes),
    /// Something for the client on the way there.
    Aside(Bytes),
    /// The worker asks its client for something.
    Asked { id: String, method: String },
    /// Something for whoever listens.
    Change(Change),
    /// Nothing to do with this request.
    Nothing,
}

/// What a worker says that no request has asked for.
pub(super) enum Unasked {
    Change(Change),
    /// It asks its client for something.
    Request {
        id: String,
        method: String,
    },
}

impl Said {
    /// `by_status`: the message is the body of a refusal, which need not know which request it is about.
    pub(super) fn judge(
        text: &[u8],
        (ask, number, session): (&Ask, u64, &Session),
        by_status: Option<StatusCode>,
    ) -> Result<Self, Cause> {
        let text = std::str::from_utf8(text).map_err(|_bytes| NO_MESSAGE)?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|_fault| NO_MESSAGE)?;
        let top = Members::read(raw).ok_or(NO_MESSAGE)?;
        let id = top.get("id");
        match (top.text("method"), id) {
            (Some(method), Some(id)) => Ok(Self::Asked { id: id.get().to_owned(), method }),
            (Some(method), None) => {
                if let Some(change) = changed(&method, &top) {
                    return Ok(Self::Change(change));
                }
                Ok(notification(text, &method, &top, ask, number).map_or(Self::Nothing, Self::Aside))
            }
            (None, id) => {
                let ours = id.is_some_and(|id| id.get() == number.to_string());
                if !ours && by_status.is_none() {
                    return Ok(Self::Nothing);
                }
                if let Some(result) = top.get("result").filter(|_| ours) {
                    let text = match shown(text, ask)? {
                        Some(shown) => list_told(&shown, ask, session)?,
                        None => result_told(text, id.ok_or(NO_MESSAGE)?, result, ask, session)?,
                    };
                    return Ok(Self::Answer(StatusCode::OK, text));
                }
                let error = top.get("error").ok_or(NO_MESSAGE)?;
                error_told(error, &ask.id, by_status.unwrap_or(StatusCode::OK))
            }
        }
    }
}

/// Whether the body of a refusal says that the worker does not know the session.
pub(super) fn is_of_lost_session(text: &[u8]) -> bool {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(text) else { return false };
    let Some(top) = Members::read(raw) else { return false };
    // A worker that names the request has read it, and whether it has carried it out is not known.
    let unread = top.get("id").is_none_or(|id| id.get() == "null");
    let message = top.get("error").filter(|_| unread).and_then(|error| Members::read(error)?.text("message"));
    // There is no code for it; these are the words of the common libraries.
    message.is_some_and(|message| {
        let message = message.to_lowercase();
        message.contains("session") || message.contains("not initialized")
    })
}

/// What a message on the session's own stream says; nothing if that is nobody's matter.
pub(super) fn unasked(text: &[u8]) -> Option<Unasked> {
    let top = Members::read(serde_json::from_slice(text).ok()?)?;
    let method = top.text("method")?;
    match top.get("id") {
        Some(id) => Some(Unasked::Request { id: id.get().to_owned(), method }),
        None => changed(&method, &top).map(Unasked::Change),
    }
}

/// Whether a message is the answer to the request of this number, and if so, whether it is a result.
pub(super) fn is_result_of(text: &[u8], number: u64) -> Option<bool> {
    let top = Members::read(serde_json::from_slice(text).ok()?)?;
    let is_ours = top.get("method").is_none() && top.get("id")?.get() == number.to_string();
    is_ours.then(|| top.get("result").is_some())
}

fn changed(method: &str, top: &Members<'_>) -> Option<Change> {
    Change::read(method, || Members::read(top.get("params")?)?.text("uri"))
}

/// What the worker offers, from what it said when the session was opened.
pub(super) fn discovery(id: &RequestId, session: &Session) -> Bytes {
    let mut capabilities = session.about.capabilities.clone();
    for unbridged in ["tasks", "extensions"] {
        capabilities.remove(unbridged);
    }
    if session.place.upstream.is_none() {
        // There is no stream on which this client could be told.
        for offer in capabilities.values_mut().filter_map(|offer| offer.as_object_mut()) {
            for told_by_stream in ["listChanged", "subscribe"] {
                offer.remove(told_by_stream);
            }
        }
    }
    let versions: Vec<_> = Version::ALL.into_iter().map(Version::as_str).collect();
    let (versions, capabilities) = (json!(versions), json!(capabilities));
    let instructions =
        session.about.instructions.as_ref().map(|text| format!(r#","instructions":{text}"#)).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","supportedVersions":{versions},"capabilities":{capabilities}{instructions},"ttlMs":0,"cacheScope":"private","_meta":{{"{SERVER}":{}}}}}}}"#,
        id.raw(),
        session.about.server
    )
    .into()
}

/// A list of tools for a credential that may not call all of them; none where nothing is left out.
fn shown(text: &str, ask: &Ask) -> Result<Option<String>, Cause> {
    if ask.wants != Wants::Tools || ask.reach.is_whole() {
        return Ok(None);
    }
    let shown = catalogue::message(text.as_bytes(), &ask.reach, false)?;
    shown.map(String::from_utf8).transpose().map_err(|_bytes| NO_MESSAGE)
}

fn list_told(text: &str, ask: &Ask, session: &Session) -> Result<Bytes, Cause> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|_fault| NO_MESSAGE)?;
    let top = Members::read(raw).ok_or(NO_MESSAGE)?;
    let (id, result) = top.get("id").zip(top.get("result")).ok_or(NO_MESSAGE)?;
    result_told(text, id, result, ask, session)
}

fn result_told(text: &str, id: &RawValue, result: &RawValue, ask: &Ask, session: &Session) -> Result<Bytes, Cause> {
    let members = Members::read(result).ok_or(NO_MESSAGE)?;
    let mut patch = Patch::new(text);
    patch.replace(id, ask.id.raw());
    let mut set = |name: &str, value: &str| match members.get(name) {
        Some(given) => patch.replace(given, value),
        None => patch.add(result, name, value),
    };
    set("resultType", r#""complete""#);
    if ask.wants.is_cacheable() {
        set("ttlMs", "0");
        set("cacheScope", r#""private""#);
    }
    if ask.wants == Wants::Tools {
        unmark(&members, &mut patch);
    }
    match members.get("_meta") {
        Some(raw) if raw.get().starts_with('{') => {
            let given = Members::read(raw).ok_or(NO_MESSAGE)?;
            match given.get(SERVER) {
                Some(_) => {}
                None => patch.add(raw, SERVER, &session.about.server),
            }
        }
        Some(raw) => patch.replace(raw, format!(r#"{{"{SERVER}":{}}}"#, session.about.server)),
        None => patch.add(result, "_meta", &format!(r#"{{"{SERVER}":{}}}"#, session.about.server)),
    }
    Ok(patch.written())
}

fn error_told(error: &RawValue, id: &RequestId, status: StatusCode) -> Result<Said, Cause> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.raw(), error.get());
    let raw: &RawValue = serde_json::from_str(&text).map_err(|_fault| NO_MESSAGE)?;
    let code = Members::read(raw).and_then(|top| Members::read(top.get("error")?)?.get("code")).ok_or(NO_MESSAGE)?;
    let status = if code.get() == NO_METHOD { StatusCode::NOT_FOUND } else { status };
    let mut patch = Patch::new(&text);
    if let Some(told) = code.get().parse().ok().and_then(code_told) {
        patch.replace(code, told.to_string());
    }
    Ok(Said::Answer(status, patch.written()))
}

/// What a modern client is told in place of a code that means something else to it, or nothing at all.
fn code_told(code: i64) -> Option<i64> {
    match code {
        NO_RESOURCE => Some(BAD_PARAMS),
        // The modern era keeps these for itself; among them is the one by which a worker sends its client to a page.
        KEPT_LEAST..=KEPT_MOST => Some(INTERNAL),
        _ => None,
    }
}

/// A notification that belongs to the request, as the client is to see it.
fn notification(text: &str, method: &str, top: &Members<'_>, ask: &Ask, number: u64) -> Option<Bytes> {
    let params = Members::read(top.get("params")?)?;
    match method {
        "notifications/progress" => {
            let token = params.get("progressToken").filter(|token| token.get() == number.to_string())?;
            let mut patch = Patch::new(text);
            patch.replace(token, ask.token.clone()?);
            Some(patch.written())
        }
        "notifications/message" => {
            let grave = Level::parse(&params.text("level")?)? >= ask.level?;
            grave.then(|| Bytes::copy_from_slice(text.as_bytes()))
        }
        _ => None,
    }
}

const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const NO_MESSAGE: Cause = Cause::WorkerAnswerUnusable("it is no JSON-RPC message");

const NO_METHOD: &str = "-32601";
/// Was the code for a resource that does not exist.
const NO_RESOURCE: i64 = -32002;
const BAD_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const KEPT_LEAST: i64 = -32099;
const KEPT_MOST: i64 = -32020;
