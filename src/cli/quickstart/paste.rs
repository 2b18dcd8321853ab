//! What a person pastes into a client, as text that works as it stands.

use std::fmt;
use std::path::Path;

use kit::Secret;

use crate::cli::say;

/// Everything that what is pasted depends on.
pub(super) struct Paste<'a> {
    pub(super) url: String,
    pub(super) token_file: &'a Path,
    /// Only where it was asked for.
    pub(super) token: Option<&'a Secret>,
}

impl fmt::Display for Paste<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, token_file, token } = self;
        let reads = format!("$(cat {})", say::quoted(&token_file.display().to_string()));
        let bearer = token.map_or(reads.as_str(), Secret::expose);
        writeln!(f, "URL\n  {url}\n")?;
        writeln!(f, "Token\n  {}", token_file.display())?;
        if let Some(token) = token {
            writeln!(f, "  {}", token.expose())?;
        }
        writeln!(f, "\nClaude Code")?;
        writeln!(
            f,
            "  claude mcp add --transport http playground {url} --header \"Authorization: Bearer {bearer}\"\n"
        )?;
        let in_json = token.map_or("${PLAYGROUND_TOKEN}", Secret::expose);
        writeln!(f, "mcp.json")?;
        writeln!(f, "  {{")?;
        writeln!(f, "    \"mcpServers\": {{")?;
        writeln!(f, "      \"playground\": {{")?;
        writeln!(f, "        \"type\": \"http\",")?;
        writeln!(f, "        \"url\": \"{url}\",")?;
        writeln!(f, "        \"headers\": {{ \"Authorization\": \"Bearer {in_json}\" }}")?;
        writeln!(f, "      }}\n    }}\n  }}")?;
        if token.is_none() {
            writeln!(f, "  (start the client with: export PLAYGROUND_TOKEN=\"{reads}\")")?;
        }
        writeln!(f, "\nTry it")?;
        write!(f, "  curl -sSi {url} -H \"Authorization: Bearer {bearer}\" -H 'Content-Type: application/json'")?;
        write!(f, " -H 'Accept: application/json, text/event-stream' -d '{INITIALIZE}'")
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}"#;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kit::Secret;

    use super::Paste;

    #[test]
    fn the_token_is_shown_only_when_asked_for() {
        let secret = Secret::new("pgt_secret");
        let paste = |token| Paste { url: "http://127.0.0.1:1/mcp".to_owned(), token_file: Path::new("/s/t"), token };
        assert!(!paste(None).to_string().contains("pgt_secret"));
        assert!(paste(None).to_string().contains("$(cat /s/t)"));
        assert!(paste(Some(&secret)).to_string().contains("Bearer pgt_secret"));
    }
}
