//! Which era a message belongs to, and the checks of the stateless one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use crate::edge::{Cause, Version};

use super::members::Members;
use super::{Era, Kind};

/// What a message and its headers say.
pub(super) struct Said<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) kind: &'a Kind,
    pub(super) params: Option<&'a Members<'a>>,
    pub(super) meta: Option<&'a Members<'a>>,
}

/// The era of a message; a modern one has passed all that the specification asks of its headers and envelope.
pub(super) fn judge(said: &Said<'_>) -> Result<Era, Cause> {
    let header = said.headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok());
    let stated = said.meta.and_then(|meta| meta.get(VERSION_MEMBER));
    if stated.is_some() || header.is_some_and(Version::names_modern) {
        return modern(said, header).map(|()| Era::Modern);
    }
    match said.kind {
        // Which revision is spoken is negotiated in the body; what the header says about it does not matter yet.
        Kind::Request { method, .. } if method == "initialize" => Ok(Era::Opening),
        Kind::Notification { method } if method == "initialize" => Err(Cause::BadShape("initialize needs an id")),
        Kind::Request { .. } | Kind::Notification { .. } | Kind::Response => known_legacy(header).map(|()| Era::Legacy),
    }
}

/// GET and DELETE exist in the legacy era alone.
pub(super) fn sessionful(headers: &HeaderMap) -> Result<(), Cause> {
    let header = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok());
    if header.is_some_and(Version::names_modern) {
        return Err(Cause::MethodNotAllowed { allow: "POST" });
    }
    known_legacy(header)
}

fn known_legacy(header: Option<&str>) -> Result<(), Cause> {
    if header.is_some_and(|text| Version::parse_legacy(text).is_none()) { Err(Cause::BadLegacyVersion) } else { Ok(()) }
}

fn modern(said: &Said<'_>, header: Option<&str>) -> Result<(), Cause> {
    let stated = said.meta.and_then(|meta| meta.text(VERSION_MEMBER));
    let method = match said.kind {
        Kind::Response => return Err(Cause::BadShape("responses are not sent to a server in this protocol version")),
        // The specification leaves the headers of notifications undefined, so none is demanded; but they go on to the worker,
        // and one that stands there twice has two readings.
        Kind::Notification { .. } => {
            let twice =
                [METHOD_NAME, NAME_NAME].into_iter().find(|name| said.headers.get_all(*name).iter().nth(1).is_some());
            return twice.map_or(Ok(()), |header| Err(Cause::HeaderMismatch { header, problem: REPEATED }));
        }
        Kind::Request { method, .. } => method,
    };
    if method == "initialize" {
        // With an envelope the client speaks the era in which the method is gone; with a header alone it is confused.
        return Err(match stated {
            Some(_) => Cause::MethodRemoved { method: "initialize" },
            None => Cause::HeaderMismatch { header: VERSION_NAME, problem: "names a version that has no initialize" },
        });
    }
    let header = header.ok_or(Cause::HeaderMismatch { header: VERSION_NAME, problem: "is missing" })?;
    let stated = stated.ok_or(Cause::MissingMeta(VERSION_MEMBER))?;
    if header != stated {
        return Err(Cause::HeaderMismatch { header: VERSION_NAME, problem: "differs from the body's _meta" });
    }
    if Version::parse(header) != Some(Version::Modern20260728) {
        return Err(Cause::UnsupportedVersion { requested: header.to_owned() });
    }
    let capabilities = said.meta.and_then(|meta| meta.get(CAPABILITIES_MEMBER));
    if !capabilities.is_some_and(|raw| raw.get().starts_with('{')) {
        return Err(Cause::MissingMeta(CAPABILITIES_MEMBER));
    }
    mirrored(said.headers, METHOD_NAME, method, false)?;
    if let Some(member) = named_by(method) {
        let name = said.params.and_then(|params| params.text(member));
        // Without a name in the body there is nothing to mirror, and the worker says what is missing.
        if let Some(name) = name {
            mirrored(said.headers, NAME_NAME, &name, true)?;
        }
    }
    Ok(())
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

fn mirrored(headers: &HeaderMap, name: &'static str, body: &str, encoded: bool) -> Result<(), Cause> {
    let fail = |problem| Cause::HeaderMismatch { header: name, problem };
    let mut values = headers.get_all(name).iter();
    let value = values.next().ok_or_else(|| fail("is missing"))?;
    if values.next().is_some() {
        return Err(fail(REPEATED));
    }
    let text = value.to_str().map_err(|_bytes| fail("holds invalid characters"))?;
    let text = if encoded { decoded(text).ok_or_else(|| fail("holds invalid base64"))? } else { text.to_owned() };
    if text == body { Ok(()) } else { Err(fail("differs from the body")) }
}

/// A value behind the sentinel for what a header cannot carry.
fn decoded(text: &str) -> Option<String> {
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

const VERSION_NAME: &str = "MCP-Protocol-Version";
const METHOD_NAME: &str = "Mcp-Method";
const NAME_NAME: &str = "Mcp-Name";
const REPEATED: &str = "is repeated";
const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION_MEMBER: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_MEMBER: &str = "io.modelcontextprotocol/clientCapabilities";
