//! Whether a message's era is one that its worker is known to speak.

use serde::Deserialize;

use crate::edge::{Call, Cause, Era};
use crate::worker::Upstream;
use crate::worker::terms::Bridge;

/// How a message reaches a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In its own era. So does a message for a worker that nothing is known of.
    Native,
    /// Through a session that the edge keeps.
    Bridged,
}

#[derive(Deserialize)]
struct Opening {
    params: Asked,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "protocolVersion")]
    version: String,
}

/// The way of this message, or why there is none.
pub(super) fn way(call: &Call, upstream: &Upstream) -> Result<Way, Cause> {
    let Some(found) = upstream.eras.found() else { return Ok(Way::Native) };
    let modern = matches!(call, Call::Message(message) if message.era == Era::Modern);
    if modern && found.is_legacy_only() {
        return match upstream.terms.bridge {
            Bridge::Refuse => Err(Cause::SessionsOnly),
            Bridge::Modern => Ok(Way::Bridged),
        };
    }
    if !modern && found.is_modern_only() {
        return Err(Cause::StatelessOnly { requested: asked(call) });
    }
    Ok(Way::Native)
}

/// The revision that an `initialize` asks for.
fn asked(call: &Call) -> String {
    let Call::Message(message) = call else { return String::new() };
    serde_json::from_slice::<Opening>(&message.body).map(|opening| opening.params.version).unwrap_or_default()
}
