//! What a client reads: what happened, what is known of the state, what to do next.

use serde_json::{Value, json};

use super::Cause;
use crate::edge::Version;

pub(super) fn of(cause: &Cause) -> String {
    match cause {
        Cause::HeadTooLarge => {
            "The headers are too many or too long. Nothing was done. Next: send fewer or shorter ones.".into()
        }
        Cause::BadHost => {
            "The request has no usable Host. Nothing was done. Next: send exactly one Host header.".into()
        }
        Cause::WrongHost { .. } => "This server does not answer to that Host. Nothing was done. \
             Next: use the URL the operator gave you; the operator lists more names with the host setting."
            .into(),
        Cause::BadTarget => "The request target is not usable. Nothing was done. Next: send a plain path.".into(),
        Cause::BadOrigin => "Pages of this Origin may not call this server. Nothing was done. \
             Next: ask the operator to allow the origin."
            .into(),
        Cause::RepeatedHeader(name) => {
            format!("The header {name} is repeated or unreadable. Nothing was done. Next: send it once, in ASCII.")
        }
        Cause::BadTransferEncoding => {
            "Only the transfer coding \"chunked\" is understood. Nothing was done. Next: send it alone.".into()
        }
        Cause::UnknownMethod => "This HTTP method is not served. Nothing was done. Next: POST to /mcp.".into(),
        Cause::NoCredential => "This server needs a bearer token. Nothing was done. \
             Next: send `Authorization: Bearer <token>`; the operator mints one."
            .into(),
        Cause::BadCredential => "The bearer token is unknown, expired or revoked. Nothing was done. \
             Next: ask the operator for a new one."
            .into(),
        Cause::WrongBackend => "This token is for another backend than this server's. Nothing was done. \
             Next: ask the operator for one of this server."
            .into(),
        Cause::TenantDisabled => "This tenant is disabled. Nothing was done. \
             Next: ask the operator; the token stays good for when it is enabled again."
            .into(),
        Cause::ToolDenied { tool } => format!(
            "This credential may not call the tool {tool:?}. Nothing was done. \
             Next: use another tool; the operator decides which ones it may call."
        ),
        Cause::OutOfScope | Cause::LacksScopes(_) => "The scopes of this credential do not open that. Nothing was done. \
             Next: log in again with the scope that the answer's WWW-Authenticate names, or ask the operator."
            .into(),
        Cause::TooManyFailures { again } => format!(
            "Too many wrong credentials from this address. Nothing was done. Next: wait {} s; a valid one passes at once.",
            again.as_secs().saturating_add(1)
        ),
        Cause::TooManyRequests { again } => format!(
            "This tenant sends requests faster than allowed. Nothing was done. Next: wait {} s and send it again.",
            again.as_secs().saturating_add(1)
        ),
        Cause::TooManyProbes { again } => format!(
            "Too many health checks from this address. Nothing was done. Next: wait {} s, and check less often.",
            again.as_secs().saturating_add(1)
        ),
        Cause::TooManyLogins { again } => format!(
            "Too many requests to log in from this address. Nothing was done. Next: wait {} s and try again.",
            again.as_secs().saturating_add(1)
        ),
        Cause::NoSuchPath => "There is nothing here. Nothing was done. Next: POST to /mcp.".into(),
        Cause::MethodNotAllowed { allow } => {
            format!("This method is not served here. Nothing was done. Next: use one of {allow}.")
        }
        Cause::NotJson => "The body must be application/json. Nothing was done. Next: set Content-Type.".into(),
        Cause::Encoded => "Compressed bodies are not read. Nothing was done. Next: send it uncompressed.".into(),
        Cause::NotAcceptable => "Answers are application/json or text/event-stream, and Accept allows neither. \
             Nothing was done. Next: accept both."
            .into(),
        Cause::BodyTooLarge { most } => {
            format!("The body is larger than {most} bytes. Nothing was done. Next: send less at a time.")
        }
        Cause::BodyTooSlow => "The body did not arrive in time. Nothing was done. Next: send it again.".into(),
        Cause::BodyBroken => "The body broke off. Nothing was done. Next: send it again.".into(),
        Cause::TenantBusy { most } => format!(
            "{most} exchanges of this tenant are under way, which is the limit. Nothing was done. \
             Next: wait for one to end, then send it again."
        ),
        Cause::TenantFull { most } => format!(
            "The request bodies of this tenant would take more than {most} bytes, which is the limit. Nothing was done. \
             Next: wait for one of its exchanges to end, then send it again."
        ),
        Cause::TenantStreams { most } => format!(
            "{most} streams of this tenant are open, which is the limit. Nothing was done. \
             Next: close one, then open this one again."
        ),
        Cause::EdgeBusy => "The server is at its limit. Nothing was done. Next: send it again in a few seconds.".into(),
        Cause::NotRecorded => {
            "The server must record each call and cannot now. Nothing was done. Next: tell the operator.".into()
        }
        Cause::Unparsable => "The body is not JSON. Nothing was done. Next: send one JSON-RPC message.".into(),
        Cause::BadShape(problem) => {
            format!("The body is not one JSON-RPC 2.0 message: {problem}. Nothing was done. Next: correct it.")
        }
        Cause::Repeated { member, place } => {
            format!("The member {member:?} appears twice in {place}. Nothing was done. Next: send it once.")
        }
        Cause::HeaderMismatch { header, problem } => {
            format!("The header {header} {problem}. Nothing was done. Next: set it from the body.")
        }
        Cause::UnsupportedVersion { requested } if has_sessions(requested) => format!(
            "Protocol version {requested:?} takes no stateless request. Nothing was done. Next: use {} in _meta, or open \
             a session with initialize ({}).",
            names(stateless()),
            names(sessionful())
        ),
        Cause::UnsupportedVersion { requested } => format!(
            "Protocol version {requested:?} is not supported. Nothing was done. Next: use one of {}.",
            names(all())
        ),
        Cause::MissingMeta(member) => {
            format!("The request's _meta has no usable {member}. Nothing was done. Next: send it with each request.")
        }
        Cause::UnnamedTool => "params.name must be a text. This credential may call certain tools only. Nothing was done. \
             Next: name the tool."
            .into(),
        Cause::BadParams(member) => {
            format!(
                "The request's params have no usable {member}. Nothing was done. Next: send it as the method defines it."
            )
        }
        Cause::MethodRemoved { method } => format!(
            "The method {method} does not exist in this protocol version. Nothing was done. Next: send the request \
             itself with _meta, or open a session without it ({}).",
            names(all())
        ),
        Cause::BadLegacyVersion => format!(
            "The MCP-Protocol-Version header names no supported version. Nothing was done. Next: use one of {}.",
            names(all())
        ),
        Cause::RetiredVersion { requested } => format!(
            "Protocol version {requested:?} is not served here. Nothing was sent to the worker. Next: initialize with one \
             of {}, or use {} without initialize.",
            names(sessionful()),
            names(stateless())
        ),
        Cause::SessionsOnly => format!(
            "This worker knows sessions only and serves no request without one. Nothing was sent to it. Next: open a \
             session with `initialize` ({}).",
            names(sessionful())
        ),
        Cause::StatelessOnly { .. } => format!(
            "This worker knows no sessions and no `initialize`. Nothing was sent to it. Next: use a client that speaks {}.",
            names(stateless())
        ),
        Cause::NotBridged => {
            "This worker knows sessions only, and the method has no counterpart there. Nothing was sent to it. \
             Next: do without it."
                .into()
        }
        Cause::NoSession => "This request needs an Mcp-Session-Id. Nothing was done. Next: initialize first.".into(),
        Cause::UnknownSession => "This session has ended or is not known. Nothing was done; files and jobs are \
             untouched. Next: initialize again without a session id."
            .into(),
        Cause::ForeignSession => "This session belongs to another tenant. Nothing was done. Next: initialize.".into(),
        Cause::TenantSessions { most } => format!(
            "{most} sessions of this tenant are open, which is the limit. Nothing was sent to the worker. Next: end one \
             with DELETE, or wait until one has been idle for its time, then initialize again."
        ),
        Cause::SessionNotEnded => {
            "The end of the session could not be recorded. It has ended for now, and may be open \
             again after a restart of the server until it expires. Next: tell the operator."
                .into()
        }
        Cause::NoWorker => "No worker serves this tenant. Nothing was sent. Next: tell the operator.".into(),
        Cause::NotSent => "This server's worker is not reachable. The request was not sent. \
             Next: try once more in a few seconds; if it stays down, tell the operator."
            .into(),
        Cause::Forgotten => "The worker does not know the session that this server keeps with it any more. By its word it \
             has not carried out the call, which was not repeated. Next: call again, and a fresh session is opened for it."
            .into(),
        Cause::Timeout { after } => format!(
            "The worker did not answer within {} s. Outcome unknown: the call may or may not have taken effect, and it \
             was not repeated. Next: check the state before calling again.",
            after.as_secs()
        ),
        Cause::Broken => "The worker broke off without an answer. Outcome unknown: the call may or may not have taken \
             effect, and it was not repeated. Next: check the state before calling again."
            .into(),
        Cause::WorkerRefusedUs => "The worker refused this server's own word, or sent it elsewhere. By that it has not carried \
             out the call, which was not repeated. Next: tell the operator."
            .into(),
        Cause::WorkerAnswerUnusable(problem) => format!(
            "The worker's answer is not usable: {problem}. Outcome unknown, and the call was not repeated. \
             Next: check the state before calling again."
        ),
        Cause::ReplyTooLarge { most } => format!(
            "The worker's answer is larger than {most} bytes, which is the limit. The call has probably taken effect, and \
             it was not repeated. Next: check the state, then ask for less at a time."
        ),
        Cause::ReplyUnheld { most } => format!(
            "The worker has answered, and there is no room to hold the answer: {}. The call has probably taken effect, and \
             it was not repeated. Next: check the state, then ask for less at a time, or when fewer exchanges are under way.",
            most.map_or_else(
                || "the server is at its limit".to_owned(),
                |most| format!("the bodies of this tenant's exchanges would take more than {most} bytes")
            )
        ),
        Cause::WorkerError(status) if status.is_server_error() => format!(
            "The worker answered {status}. Outcome unknown: the call may or may not have taken effect, and it was not \
             repeated. Next: check the state before calling again."
        ),
        Cause::WorkerError(status) => {
            format!(
                "The worker refused the request with {status} and gave no reason. It was not repeated. \
                 Next: correct the request, or tell the operator."
            )
        }
    }
}

/// What a machine needs beside the text.
pub(super) fn data(cause: &Cause) -> Option<Value> {
    if let Cause::UnsupportedVersion { requested } = cause {
        // A client tries again with one of these. One that asked for a revision with sessions would ask for it again.
        let supported: Vec<_> = if has_sessions(requested) { stateless().collect() } else { all().collect() };
        return Some(json!({ "supported": supported, "requested": requested }));
    }
    if let Cause::RetiredVersion { requested } = cause {
        return Some(json!({ "supported": sessionful().collect::<Vec<_>>(), "requested": requested }));
    }
    if let Cause::StatelessOnly { requested } = cause {
        return Some(json!({ "supported": stateless().collect::<Vec<_>>(), "requested": requested }));
    }
    if let Cause::BodyTooLarge { most } = cause {
        return Some(json!({ "limit": most }));
    }
    None
}

fn has_sessions(version: &str) -> bool {
    Version::parse_legacy(version).is_some() || Version::retired(version).is_some()
}

fn all() -> impl Iterator<Item = &'static str> {
    Version::ALL.into_iter().map(Version::as_str)
}

fn stateless() -> impl Iterator<Item = &'static str> {
    Version::ALL.into_iter().filter(|version| !version.is_legacy()).map(Version::as_str)
}

fn sessionful() -> impl Iterator<Item = &'static str> {
    Version::ALL.into_iter().filter(|version| version.is_legacy()).map(Version::as_str)
}

fn names(versions: impl Iterator<Item = &'static str>) -> String {
    versions.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
