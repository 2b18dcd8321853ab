//! Requests of the era without sessions: what their headers must say, and what a child's errors are in HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};

use crate::era::FIRST_MODERN;
use crate::frame::{Frame, Kind, text};
use crate::reply::{Answer, json, refusal};
use crate::words::{
    self, CAPABILITIES, HEADER_MISMATCH, INVALID, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    UNSUPPORTED_VERSION, VERSION,
};

/// Whether a message is of this era, by its headers or its own word.
pub(super) fn is(headers: &HeaderMap, frame: &Frame<'_>) -> bool {
    names(headers) || frame.meta(VERSION).is_some()
}

/// Whether the headers name a revision of this era, known or not.
pub(super) fn names(headers: &HeaderMap) -> bool {
    headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok()).is_some_and(is_modern)
}

/// What is wrong with a message whatever the child thinks of it. Notifications have no rules for headers.
pub(super) fn check(headers: &HeaderMap, frame: &Frame<'_>, kind: Kind) -> Result<(), Box<Answer>> {
    let id = frame.id();
    let refuse = |code, message: &str| Err(Box::new(refusal(StatusCode::BAD_REQUEST, id, code, message)));
    match kind {
        Kind::Response => return refuse(INVALID, "responses are not sent to a server in this revision"),
        Kind::Notification => return Ok(()),
        Kind::Request => {}
    }
    let stated = frame.meta(VERSION).and_then(text);
    if frame.method() == "initialize" {
        return match stated {
            Some(_) => Err(Box::new(refusal(StatusCode::NOT_FOUND, id, METHOD_NOT_FOUND, NO_INITIALIZE))),
            None => refuse(HEADER_MISMATCH, "MCP-Protocol-Version names a revision that has no initialize"),
        };
    }
    let mismatch = |name: &str, problem| refuse(HEADER_MISMATCH, &format!("{name} {problem}"));
    let version = match only(headers, VERSION_HEADER) {
        Ok(version) => version,
        Err(problem) => return mismatch("MCP-Protocol-Version", problem),
    };
    let Some(stated) = stated else {
        return refuse(INVALID_PARAMS, &format!("_meta lacks {VERSION}, which every request has"));
    };
    if version != stated {
        return mismatch("MCP-Protocol-Version", "differs from _meta");
    }
    if !is_modern(version) {
        let data = format!(r#"{{"supported":["{FIRST_MODERN}"],"requested":{}}}"#, serde_json::Value::from(version));
        let message = "this revision is not served without a session";
        return Err(Box::new(json(
            StatusCode::BAD_REQUEST,
            words::error(id, UNSUPPORTED_VERSION, message, Some(&data)),
        )));
    }
    if !frame.meta(CAPABILITIES).is_some_and(|capabilities| capabilities.starts_with('{')) {
        return refuse(INVALID_PARAMS, &format!("_meta lacks {CAPABILITIES}, which every request has"));
    }
    match only(headers, "mcp-method") {
        Ok(method) if method == frame.method() => {}
        Ok(_) => return mismatch("Mcp-Method", "differs from the body"),
        Err(problem) => return mismatch("Mcp-Method", problem),
    }
    // Without a name in the body there is nothing to mirror, and the child says what is missing.
    if let Some(name) = named_by(frame.method()).and_then(|member| frame.param(member)).and_then(text) {
        match only(headers, "mcp-name").and_then(decoded) {
            Ok(mirrored) if mirrored == name => {}
            Ok(_) => return mismatch("Mcp-Name", "differs from the body"),
            Err(problem) => return mismatch("Mcp-Name", problem),
        }
    }
    Ok(())
}

/// The status that goes with a child's answer.
pub(super) fn status(answer: &Frame<'_>) -> StatusCode {
    let is = |code: i32| answer.code() == Some(i64::from(code));
    if is(METHOD_NOT_FOUND) {
        StatusCode::NOT_FOUND
    } else if is(HEADER_MISMATCH) || is(MISSING_CAPABILITY) || is(UNSUPPORTED_VERSION) {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    }
}

/// The member that `Mcp-Name` repeats, for the methods that have one.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, &'static str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or("is missing")?;
    if values.next().is_some() {
        return Err("is repeated");
    }
    value.to_str().map_err(|_bytes| "holds invalid characters")
}

/// A value behind the sentinel for what a header cannot carry.
fn decoded(value: &str) -> Result<String, &'static str> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => {
            STANDARD.decode(inner).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or("holds invalid base64")
        }
        None => Ok(value.to_owned()),
    }
}

/// Revisions are dates, so their order is that of their texts.
fn is_modern(version: &str) -> bool {
    version.len() == FIRST_MODERN.len()
        && version.bytes().enumerate().all(
            |(at, byte)| {
                if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
            },
        )
        && version >= FIRST_MODERN
}

const VERSION_HEADER: &str = "mcp-protocol-version";
const NO_INITIALIZE: &str = "this revision has no initialize";

#[cfg(test)]
mod tests;
