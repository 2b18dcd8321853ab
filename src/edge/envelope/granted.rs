//! Whether the credential reaches as far as the message asks.
//!
//! It is judged by the same reading of the body that the worker makes, so for a credential with bounds the message must
//! be one that no reader can take for another: what some parsers take for the same member, in other letters or cut at a
//! zero, may not stand beside it.

use crate::edge::{Cause, Kind};
use crate::identity::Principal;
use crate::identity::reach::Judgement;

use super::members::Members;

/// Whether the principal may ask for this.
pub(super) fn check(
    principal: &Principal,
    top: &Members<'_>,
    kind: &Kind,
    params: Option<&Members<'_>>,
) -> Result<(), Cause> {
    let reach = principal.reach();
    if reach.is_whole() {
        return Ok(());
    }
    enters(principal)?;
    unmistakable(top, &["jsonrpc", "id", "method", "params"])?;
    let Some(method) = kind.method() else { return Ok(()) };
    if method == CALL {
        let params = params.ok_or(UNNAMED)?;
        unmistakable(params, &["name"])?;
        let tool = params.text("name").filter(|name| !name.chars().any(char::is_control)).ok_or(UNNAMED)?;
        return match reach.judge(&tool) {
            Judgement::Permitted => Ok(()),
            Judgement::Denied => Err(Cause::ToolDenied { tool: tool.chars().take(MOST_TOLD).collect() }),
            Judgement::OutOfScope => Err(Cause::OutOfScope),
        };
    }
    if folded(method) == CALL {
        return Err(Cause::BadShape("its method is that of a call in other letters"));
    }
    let is_about_tools = ["initialize", "ping", "tools/list", "server/discover", "subscriptions/listen"];
    let is_open = is_about_tools.contains(&method) || method.starts_with("notifications/");
    if reach.is_of_all() || is_open { Ok(()) } else { Err(Cause::OutOfScope) }
}

/// Whether the principal may be here at all.
pub(super) fn enters(principal: &Principal) -> Result<(), Cause> {
    if principal.reach().is_nothing() { Err(Cause::OutOfScope) } else { Ok(()) }
}

/// Refuses what a lax reader could take for one of these members.
fn unmistakable(members: &Members<'_>, known: &[&str]) -> Result<(), Cause> {
    let is_taken_for_one = |name: &str| !known.contains(&name) && known.contains(&folded(name).as_str());
    if members.iter().any(|(name, _)| is_taken_for_one(name)) {
        return Err(Cause::BadShape("a member of it is named like another in other letters"));
    }
    Ok(())
}

/// As parsers that do not mind the case read it: also the long s and the sign for kelvin are letters then.
fn folded(name: &str) -> String {
    let name = name.split('\0').next().unwrap_or_default();
    name.to_uppercase().to_lowercase()
}

const CALL: &str = "tools/call";
const UNNAMED: Cause = Cause::UnnamedTool;

/// Longer than a tool's name should be.
const MOST_TOLD: usize = 128;
