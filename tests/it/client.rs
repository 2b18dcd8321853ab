//! A client of the sandbox that speaks to a running service.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::http::{Answer, try_post};
use crate::process::{playground, run, text};

/// A tenant's open session.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    token: String,
    session: String,
}

impl Client {
    /// Makes a tenant without a pile in a state, served or not, and yields its token.
    pub(crate) fn mint(state: &Path, tenant: &str) -> String {
        // Small, so that many tenants can be promised theirs on a disk that is nearly full.
        let mut command = playground(["user", "create", tenant, "--no-pile", "--disk", "256MiB", "--state"]);
        command.arg(state);
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    pub(crate) fn open(address: SocketAddr, token: &str) -> Self {
        let mut client = Self { address, token: token.to_owned(), session: String::new() };
        let body = crate::fake_worker::INITIALIZE;
        let answer = try_post(address, "/mcp", Some(token), &[], body).expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
        client.session = answer.head.get("mcp-session-id").expect("a session").clone();
        client
    }

    /// One tool call as it comes back.
    pub(crate) fn try_call(&self, tool: &str, arguments: &Value) -> std::io::Result<Answer> {
        let call = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let headers = [("mcp-session-id", self.session.as_str()), ("mcp-protocol-version", "2025-06-18")];
        try_post(self.address, "/mcp", Some(&self.token), &headers, &call.to_string())
    }

    /// The head of a call whose body has so many bytes, for who writes it by hand.
    pub(crate) fn head(&self, length: usize) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: {}\r\nMcp-Protocol-Version: \
             2025-06-18\r\nContent-Length: {length}\r\n\r\n",
            self.address, self.token, self.session
        )
    }

    /// One tool call that works.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.try_call(tool, arguments).expect("an answer");
        let message = answer.message();
        assert_eq!(message["result"]["isError"], false, "{answer:?}");
        message["result"].clone()
    }

    /// A handle on the tenant's sandbox.
    pub(crate) fn handle(&self) -> String {
        let opened = self.call("open_session", &json!({}));
        opened["structuredContent"]["session"].as_str().expect("a handle").to_owned()
    }

    /// What a command wrote.
    pub(crate) fn exec(&self, handle: &str, command: &str) -> String {
        let result = self.call("exec", &json!({ "session": handle, "command": command }));
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }
}
