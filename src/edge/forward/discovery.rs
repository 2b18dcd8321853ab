//! The answer to `server/discover`: what the worker offers, less what the edge does not carry.
//!
//! Versions that the edge does not serve are left out, and the answer of a worker that is not known to say the same to
//! every tenant is marked private. All other bytes stay as they came, and all of them where nothing has to change.

use serde_json::value::RawValue;

use crate::edge::{Cause, Version};

use super::edited::{self, Edits, objects, place, private};
use super::relay::Relay;

/// Reads the answer until it says what is offered, and puts it back as the client is to see it.
pub(super) async fn read(relay: &mut Relay, events: bool, most: usize, neutral: bool) -> Result<(), Cause> {
    edited::read(relay, events, most, |text| message(text, neutral)).await
}

/// The response as the client is to see it, if that is not as it is.
fn message(text: &[u8], neutral: bool) -> Result<Option<Vec<u8>>, Cause> {
    // What is no JSON tells the client nothing in any wording.
    let Ok(raw) = serde_json::from_slice::<&RawValue>(text) else { return Ok(None) };
    let mut edits = Edits::new();
    for result in objects(raw)?.iter().flat_map(|top| top.all("result")) {
        let Some(members) = objects(result)? else { continue };
        for versions in members.all("supportedVersions") {
            edits.extend(served(versions).map(|served| (place(text, versions.get()), served)));
        }
        if !neutral {
            private(text, result, &members, &mut edits);
        }
    }
    Ok(edited::edited(text, edits))
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

#[cfg(test)]
mod tests;
