//! A client of `playground mcp`, at the other end of its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::process::{PATIENCE, Watched};

pub(crate) struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Talk {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut talk = Self { input: child.stdin.take(), child, lines, next: 0 };
        let client = json!({ "name": "t", "version": "1" });
        talk.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }));
        talk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        talk
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("open"), "{message}").expect("written");
    }

    /// Begins a request and yields its id.
    pub(crate) fn begin(&mut self, method: &str, parameters: &Value) -> u64 {
        self.next += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": parameters }));
        self.next
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.begin(method, parameters);
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
            let message: Value = serde_json::from_str(&line).expect("only MCP stands on stdout");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// What a tool says, and whether it is a fault.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, result["isError"].as_bool().unwrap_or(true))
    }

    /// A handle on a tenant's sandbox.
    pub(crate) fn open(&mut self, tenant: &str) -> String {
        let result = self.ask("tools/call", &json!({ "name": "open_session", "arguments": { "tenant": tenant } }));
        result["structuredContent"]["session"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    pub(crate) fn exec(&mut self, session: &str, command: &str) -> String {
        let (text, is_fault) = self.call("exec", &json!({ "session": session, "command": command }));
        assert!(!is_fault, "{text}");
        text
    }

    /// Ends it in order.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(Watched::of(self.child.id()).gone_within(PATIENCE), "it did not end");
        assert_eq!(self.child.wait().expect("ended").code(), Some(0));
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
