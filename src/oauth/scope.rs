//! What a client may be allowed to do.

use super::state::Scopes;

/// All that there is to be done with the tools.
pub const MCP: &str = "mcp";
/// Staying connected while the person is away.
pub const OFFLINE: &str = "offline_access";

/// The scopes of a request, if all of them are known and a token with them is good for something. Nothing asked for is
/// [`MCP`].
pub(super) fn asked(text: Option<&str>) -> Option<Scopes> {
    let scopes = Scopes::parse(text.unwrap_or(MCP)).ok()?;
    let known = scopes.iter().all(|scope| matches!(scope, MCP | OFFLINE));
    (known && scopes.contains(MCP)).then_some(scopes)
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn known_scopes_may_be_asked_for_and_nothing_is_the_usual_one() {
        for (text, scope) in [
            (None, Some("mcp")),
            (Some("mcp"), Some("mcp")),
            (Some("mcp offline_access"), Some("mcp offline_access")),
            (Some("offline_access mcp mcp"), Some("mcp offline_access")),
            (Some("offline_access"), None),
            (Some("mcp admin"), None),
            (Some("MCP"), None),
        ] {
            assert_eq!(asked(text).map(|scopes| scopes.to_string()).as_deref(), scope, "{text:?}");
        }
    }
}
