//! The clients that are known, and the text that each wants, with places in it that [`fill`](super::fill) knows.

pub(super) struct Client {
    /// The first is the usual one.
    pub(super) names: &'static [&'static str],
    pub(super) title: &'static str,
    pub(super) token: Option<&'static str>,
    pub(super) login: Option<&'static str>,
    /// Whether it leaves out a token that it was given once it finds that it could log in.
    pub(super) drops_token: bool,
    /// Whether it connects from servers of its maker's.
    pub(super) is_elsewhere: bool,
}

impl Client {
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

pub(super) fn names() -> Vec<&'static str> {
    CLIENTS.iter().flat_map(|client| client.names).copied().collect()
}

/// In the order of how often they are met.
pub(super) const CLIENTS: &[Client] = &[
    Client {
        names: &["claude-code"],
        title: "Claude Code",
        token: Some(r#"claude mcp add --transport http playground @URL@ --header @HEADER@"#),
        login: Some("claude mcp add --transport http playground @URL@\nclaude mcp login playground"),
        drops_token: true,
        is_elsewhere: false,
    },
    Client {
        names: &["claude", "claude-ai"],
        title: "Claude on the web and on a phone",
        token: None,
        login: Some("Settings > Connectors > Add custom connector\n  Name  playground\n  URL   @URL@"),
        drops_token: false,
        is_elsewhere: true,
    },
    Client {
        names: &["claude-desktop"],
        title: "Claude Desktop",
        token: Some(
            r#"claude_desktop_config.json, with the text of @FILE@ in the place of TOKEN; then start it again:
{
  "mcpServers": {
    "playground": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "@URL@", "--header", "Authorization:${AUTHORIZATION}"],
      "env": { "AUTHORIZATION": "Bearer TOKEN" }
    }
  }
}"#,
        ),
        login: Some("Settings > Connectors > Add custom connector\n  Name  playground\n  URL   @URL@"),
        drops_token: false,
        is_elsewhere: true,
    },
    Client {
        names: &["chatgpt"],
        title: "ChatGPT",
        token: None,
        login: Some(
            "Settings > Apps > Advanced settings > Developer mode: on\nSettings > Apps > Create\n  Name            playground\n  MCP server URL  @URL@\n  Authentication  OAuth",
        ),
        drops_token: false,
        is_elsewhere: true,
    },
    Client {
        names: &["cursor"],
        title: "Cursor",
        token: Some(
            r#"@EXPORT:Cursor@
~/.cursor/mcp.json:
{
  "mcpServers": {
    "playground": {
      "url": "@URL@",
      "headers": @HEADERS:${env:PLAYGROUND_TOKEN}@
    }
  }
}"#,
        ),
        login: Some(
            r#"~/.cursor/mcp.json:
{
  "mcpServers": {
    "playground": { "url": "@URL@" }
  }
}"#,
        ),
        drops_token: true,
        is_elsewhere: false,
    },
    Client {
        names: &["vscode", "copilot"],
        title: "VS Code",
        token: Some(
            r#".vscode/mcp.json, which asks once for the text of @FILE@:
{
  "inputs": [
    { "type": "promptString", "id": "playground-token", "description": "Token of playground", "password": true }
  ],
  "servers": {
    "playground": {
      "type": "http",
      "url": "@URL@",
      "headers": @HEADERS:${input:playground-token}@
    }
  }
}"#,
        ),
        login: Some(
            r#".vscode/mcp.json:
{
  "servers": {
    "playground": { "type": "http", "url": "@URL@" }
  }
}"#,
        ),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["codex"],
        title: "Codex",
        token: Some(
            r#"@EXPORT:Codex@
~/.codex/config.toml:
[mcp_servers.playground]
url = "@URL@"
bearer_token_env_var = "PLAYGROUND_TOKEN"
tool_timeout_sec = 300"#,
        ),
        login: Some("codex mcp add playground --url @URL@\ncodex mcp login playground"),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["gemini"],
        title: "Gemini CLI",
        token: Some(
            r#"@EXPORT:Gemini@
~/.gemini/settings.json:
{
  "mcpServers": {
    "playground": {
      "httpUrl": "@URL@",
      "headers": @HEADERS:$PLAYGROUND_TOKEN@,
      "timeout": 300000
    }
  }
}"#,
        ),
        login: Some("gemini mcp add --transport http playground @URL@\n/mcp auth playground     # within Gemini"),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["zed"],
        title: "Zed",
        token: Some(
            r#"settings.json, with the text of @FILE@ in the place of TOKEN:
{
  "context_servers": {
    "playground": {
      "url": "@URL@",
      "headers": @HEADERS:TOKEN@
    }
  }
}"#,
        ),
        login: Some(
            r#"settings.json:
{
  "context_servers": {
    "playground": { "url": "@URL@" }
  }
}"#,
        ),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["windsurf"],
        title: "Windsurf",
        token: Some(
            r#"@EXPORT:Windsurf@
~/.codeium/windsurf/mcp_config.json:
{
  "mcpServers": {
    "playground": {
      "serverUrl": "@URL@",
      "headers": @HEADERS:${env:PLAYGROUND_TOKEN}@
    }
  }
}"#,
        ),
        login: Some(
            r#"~/.codeium/windsurf/mcp_config.json:
{
  "mcpServers": {
    "playground": { "serverUrl": "@URL@" }
  }
}"#,
        ),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["goose"],
        title: "goose",
        token: Some(
            r#"~/.config/goose/config.yaml, with the text of @FILE@ in the place of TOKEN:
extensions:
  playground:
    enabled: true
    name: playground
    type: streamable_http
    uri: "@URL@"
    headers:
      Authorization: "Bearer TOKEN"
    timeout: 300"#,
        ),
        login: Some("goose session --with-streamable-http-extension @URL@"),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["opencode"],
        title: "opencode",
        token: Some(
            r#"@EXPORT:opencode@
opencode.jsonc:
{
  "mcp": {
    "servers": {
      "playground": {
        "type": "remote",
        "url": "@URL@",
        "headers": @HEADERS:{env:PLAYGROUND_TOKEN}@,
        "oauth": false
      }
    }
  }
}"#,
        ),
        login: Some(
            r#"opencode.jsonc, then: opencode mcp auth playground
{
  "mcp": {
    "servers": {
      "playground": { "type": "remote", "url": "@URL@" }
    }
  }
}"#,
        ),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["mcp-remote", "stdio"],
        title: "A client that only starts programs, by mcp-remote",
        token: Some(
            r#"its configuration, with the text of @FILE@ in the place of TOKEN:
{
  "mcpServers": {
    "playground": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "@URL@", "--header", "Authorization:${AUTHORIZATION}"],
      "env": { "AUTHORIZATION": "Bearer TOKEN" }
    }
  }
}"#,
        ),
        login: Some(
            r#"its configuration:
{
  "mcpServers": {
    "playground": { "command": "npx", "args": ["-y", "mcp-remote", "@URL@"] }
  }
}"#,
        ),
        drops_token: true,
        is_elsewhere: false,
    },
    Client {
        names: &["inspector"],
        title: "MCP Inspector",
        token: Some(
            r#"npx @modelcontextprotocol/inspector --cli @URL@ --transport http --header @HEADER@ --method tools/list"#,
        ),
        login: Some("npx @modelcontextprotocol/inspector --transport http --server-url @URL@"),
        drops_token: false,
        is_elsewhere: false,
    },
    Client {
        names: &["curl"],
        title: "curl",
        token: Some(
            r#"curl -sS @URL@ -H @HEADER@ -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}'"#,
        ),
        login: None,
        drops_token: false,
        is_elsewhere: false,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::PathBuf;

    use super::CLIENTS;
    use crate::cli::connect::address::Address;
    use crate::cli::connect::fill::Fill;

    fn texts() -> impl Iterator<Item = (&'static str, bool, String)> {
        let fill = || Fill {
            url: Address::parse("https://mcp.example.org/mcp").unwrap(),
            token_file: Some(PathBuf::from("/s/a b.token")),
        };
        CLIENTS.iter().flat_map(move |client| {
            let ways = [(true, client.token), (false, client.login)];
            let ways = ways.into_iter().filter_map(|(by_token, text)| Some((by_token, text?)));
            ways.map(move |(by_token, text)| (client.title, by_token, fill().into_text(text)))
        })
    }

    #[test]
    fn every_text_names_the_address_and_leaves_no_place_empty() {
        for (title, by_token, text) in texts() {
            assert!(text.contains("https://mcp.example.org/mcp"), "{title}");
            assert!(!text.contains('@') || text.contains("@modelcontextprotocol"), "{title}: {text}");
            assert_eq!(text.contains("/s/a b.token"), by_token, "{title}: {text}");
            assert_eq!(text.contains("earer"), by_token, "{title}: {text}");
        }
    }

    #[test]
    fn what_is_json_or_toml_can_be_read_as_such() {
        let mut read = 0;
        for (title, _, text) in texts() {
            if let Some(at) = text.find("\n{\n") {
                serde_json::from_str::<serde_json::Value>(&text[at..])
                    .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                read += 1;
            }
            if let Some(at) = text.find("\n[mcp_servers") {
                toml::from_str::<toml::Table>(&text[at..]).unwrap_or_else(|fault| panic!("{title}: {fault}"));
                read += 1;
            }
        }
        assert!(read >= 14, "{read}");
    }

    #[test]
    fn no_two_clients_share_a_name() {
        let mut seen = HashSet::new();
        assert!(CLIENTS.iter().flat_map(|client| client.names).all(|name| seen.insert(name)));
        assert!(CLIENTS.iter().all(|client| client.token.is_some() || client.login.is_some()));
    }
}
