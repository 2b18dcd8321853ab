//! The answer to `server/discover`: what the worker offers, less what the edge does not carry.
//!
//! Versions that the edge does not serve are left out, and the answer of a worker that is not known to say the same to
//! every tenant is marked private. All other bytes stay as they came, and all of them where nothing has to change.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::edge::{Cause, Members, Version};

use super::relay::Relay;
use super::{ahead, sse};

/// Reads the answer until it says what is offered, and puts it back as the client is to see it.
pub(super) async fn read(relay: &mut Relay, events: bool, most: usize, neutral: bool) -> Result<(), Cause> {
    let responds = |event: &sse::Event| is_response(&event.data);
    let text = ahead::read(relay, most, |text| events && sse::events(text).iter().any(responds)).await?;
    let told = if events {
        match sse::events(&text).into_iter().find(responds) {
            Some(event) => message(&event.data, neutral)?.map(|told| within(&text, &event.lines, &told)),
            None => None,
        }
    } else {
        message(&text, neutral)?
    };
    relay.put_back(told.map_or(text, Bytes::from));
    Ok(())
}

fn is_response(message: &[u8]) -> bool {
    let members = serde_json::from_slice(message).ok().and_then(Members::read);
    members.is_some_and(|members| members.all("result").chain(members.all("error")).next().is_some())
}

/// The response as the client is to see it, if that is not as it is.
fn message(text: &[u8], neutral: bool) -> Result<Option<Vec<u8>>, Cause> {
    // What is no JSON tells the client nothing in any wording.
    let Ok(raw) = serde_json::from_slice::<&RawValue>(text) else { return Ok(None) };
    let mut edits = Vec::new();
    for result in objects(raw)?.iter().flat_map(|top| top.all("result")) {
        let Some(members) = objects(result)? else { continue };
        for versions in members.all("supportedVersions") {
            edits.extend(served(versions).map(|served| (place(text, versions.get()), served)));
        }
        if neutral {
            continue;
        }
        let mut scopes = members.all("cacheScope").peekable();
        if scopes.peek().is_none() {
            let start = place(text, result.get()).start + 1;
            let comma = if members.is_empty() { "" } else { "," };
            edits.push((start..start, format!("\"cacheScope\":{PRIVATE}{comma}")));
        }
        edits.extend(
            scopes.filter(|scope| scope.get() != PRIVATE).map(|scope| (place(text, scope.get()), PRIVATE.to_owned())),
        );
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.sort_by_key(|(place, _)| place.start);
    let mut told = Vec::with_capacity(text.len());
    let mut done = 0;
    for (place, new) in edits {
        told.extend_from_slice(text.get(done..place.start).unwrap_or_default());
        told.extend_from_slice(new.as_bytes());
        done = place.end;
    }
    told.extend_from_slice(text.get(done..).unwrap_or_default());
    Ok(Some(told))
}

/// The members of an object; nothing if it is none.
fn objects(raw: &RawValue) -> Result<Option<Members<'_>>, Cause> {
    if !raw.get().starts_with('{') {
        return Ok(None);
    }
    Members::read(raw).map(Some).ok_or(Cause::WorkerAnswerUnusable("it has too many members"))
}

/// A list of versions without those that the edge does not serve, if there are such.
fn served(versions: &RawValue) -> Option<String> {
    let all: Vec<&RawValue> = serde_json::from_str(versions.get()).ok()?;
    let known = |version: &&RawValue| {
        serde_json::from_str::<String>(version.get()).is_ok_and(|version| Version::parse(&version).is_some())
    };
    let kept: Vec<_> = all.iter().copied().filter(known).map(RawValue::get).collect();
    (kept.len() < all.len()).then(|| format!("[{}]", kept.join(",")))
}

/// Where a part of `text` lies in it.
fn place(text: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + part.len()
}

/// The stream with `data` in place of what stood on these lines of an event.
fn within(text: &[u8], lines: &[Range<usize>], data: &[u8]) -> Vec<u8> {
    let mut told = Vec::with_capacity(text.len());
    let mut done = 0;
    let mut pieces = data.split(|byte| *byte == b'\n');
    for line in lines {
        told.extend_from_slice(text.get(done..line.start).unwrap_or_default());
        // The edits add and remove no line end of the data, except that those within a list may go.
        told.extend_from_slice(b"data: ");
        told.extend_from_slice(pieces.next().unwrap_or_default());
        done = line.end;
    }
    told.extend_from_slice(text.get(done..).unwrap_or_default());
    told
}

const PRIVATE: &str = "\"private\"";

#[cfg(test)]
mod tests;
