//! An answer of which the client is to see something else in some places, and every other byte as it came.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::edge::{Cause, Members};

use super::relay::Relay;
use super::{ahead, sse};

/// Other words for parts of a text.
pub(super) type Edits = Vec<(Range<usize>, String)>;

/// Reads the answer until it has its response, and puts it back as `change` has it: another text for a message, or
/// none where it stays.
pub(super) async fn read(
    relay: &mut Relay,
    events: bool,
    most: usize,
    change: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, Cause>,
) -> Result<(), Cause> {
    let responds = |event: &sse::Event| is_response(&event.data);
    let text = ahead::read(relay, most, |text| events && sse::events(text).iter().any(responds)).await?;
    let told = if events {
        let mut told = None;
        // From the last to the first, so that the places of those before stay.
        for event in sse::events(&text).iter().rev() {
            if let Some(data) = change(&event.data)? {
                told = Some(within(told.as_deref().unwrap_or(&text), &event.lines, &data));
            }
        }
        told
    } else {
        change(&text)?
    };
    relay.put_back(told.map_or(text, Bytes::from));
    Ok(())
}

/// The text with these edits; none where there is nothing to edit.
pub(super) fn edited(text: &[u8], mut edits: Edits) -> Option<Vec<u8>> {
    if edits.is_empty() {
        return None;
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
    Some(told)
}

/// Makes the result one that nobody else is to be given.
pub(super) fn private(text: &[u8], result: &RawValue, members: &Members<'_>, edits: &mut Edits) {
    let mut scopes = members.all("cacheScope").peekable();
    if scopes.peek().is_none() {
        let start = place(text, result.get()).start + 1;
        let comma = if members.is_empty() { "" } else { "," };
        edits.push((start..start, format!("\"cacheScope\":{PRIVATE}{comma}")));
    }
    let others = scopes.filter(|scope| scope.get() != PRIVATE);
    edits.extend(others.map(|scope| (place(text, scope.get()), PRIVATE.to_owned())));
}

/// The members of an object; nothing if it is none.
pub(super) fn objects(raw: &RawValue) -> Result<Option<Members<'_>>, Cause> {
    if !raw.get().starts_with('{') {
        return Ok(None);
    }
    Members::read(raw).map(Some).ok_or(Cause::WorkerAnswerUnusable("it has too many members"))
}

/// Where a part of `text` lies in it.
pub(super) fn place(text: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + part.len()
}

/// The stream with `data` in place of what stood on these lines of an event.
pub(super) fn within(text: &[u8], lines: &[Range<usize>], data: &[u8]) -> Vec<u8> {
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

fn is_response(message: &[u8]) -> bool {
    let members = serde_json::from_slice(message).ok().and_then(Members::read);
    members.is_some_and(|members| members.all("result").chain(members.all("error")).next().is_some())
}

const PRIVATE: &str = "\"private\"";
