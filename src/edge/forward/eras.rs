//! Whether a message's era is one that its worker is known to speak.

use serde::Deserialize;

use crate::edge::{Call, Cause, Era};
use crate::worker::Upstream;
use crate::worker::terms::Bridge;

/// How a message reaches a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In its own era. So does a message for a worker that nothing is known of, unless a bridge may be needed.
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
    let modern = matches!(call, Call::Message(message) if message.era == Era::Modern);
    let Some(found) = upstream.eras.found() else {
        // Where a bridge is wanted the worker is likely to need it: what it cannot read must not look like its refusal.
        let may_need_bridge = modern && upstream.terms.bridge == Bridge::Modern;
        return if may_need_bridge { Err(Cause::NotSent) } else { Ok(Way::Native) };
    };
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
