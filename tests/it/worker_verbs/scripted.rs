//! A worker of the session era that counts its sessions, with a list of tools as good or as bad as a test wants it.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fake_worker::INTERNAL;

/// What it says to `tools/list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tools {
    Good,
    /// With what clients refuse.
    Bad,
    /// Three pages, a tool each.
    Paged,
    /// Each page leads to the first.
    Circle,
    /// It reads the question and says nothing.
    Silent,
    None,
}

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    tools: Tools,
    guards: bool,
    open: HashSet<String>,
    opened: usize,
    ended: usize,
    methods: Vec<String>,
}

impl Scripted {
    pub(crate) fn start(tools: Tools) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let state = State { tools, guards: true, open: HashSet::new(), opened: 0, ended: 0, methods: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    /// The same worker, which lets everybody in.
    pub(crate) fn without_door(self) -> Self {
        self.state.lock().expect("no panic").guards = false;
        self
    }

    /// How many sessions were opened, and how many ended.
    pub(crate) fn sessions(&self) -> (usize, usize) {
        let state = self.state.lock().expect("no panic");
        (state.opened, state.ended)
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.state.lock().expect("no panic").methods.clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read(&mut reader) {
        let Some((status, headers, body)) = answer(&head, &body, &mut state.lock().expect("no panic")) else {
            continue;
        };
        let text = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if reader.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &str, state: &mut State) -> Option<(u16, String, String)> {
    let header = |name: &str| {
        let value = |line: &str| line.to_ascii_lowercase().starts_with(&format!("{name}: ")).then(|| line.to_owned());
        head.lines().find_map(value).map(|line| line[name.len() + 2..].trim().to_owned())
    };
    if state.guards && header("authorization") != Some(format!("Bearer {INTERNAL}")) {
        return Some((401, String::new(), String::new()));
    }
    let session = header("mcp-session-id").filter(|session| state.open.contains(session));
    if head.starts_with("DELETE") {
        let Some(session) = session else { return Some((404, String::new(), String::new())) };
        state.open.remove(&session);
        state.ended += 1;
        return Some((204, String::new(), String::new()));
    }
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    let method = asked["method"].as_str().unwrap_or_default().to_owned();
    state.methods.push(method.clone());
    let reply = |result: Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string();
    if method == "initialize" {
        state.opened += 1;
        let session = format!("s{}", state.opened);
        state.open.insert(session.clone());
        let result = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "instructions": "Call read_file.",
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        return Some((200, format!("Mcp-Session-Id: {session}\r\n"), reply(result)));
    }
    if session.is_none() || header("mcp-protocol-version").as_deref() != Some("2025-06-18") {
        return Some((400, String::new(), String::new()));
    }
    if method == "notifications/initialized" {
        return Some((202, String::new(), String::new()));
    }
    let cursor = asked["params"]["cursor"].as_str().unwrap_or_default();
    Some((200, String::new(), list(state.tools, cursor, &asked["id"])?))
}

fn list(tools: Tools, cursor: &str, id: &Value) -> Option<String> {
    let tool = |name: &str| {
        json!({
            "name": name, "title": "Read", "description": "Reads a file.", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        })
    };
    let result = match tools {
        Tools::Good => json!({ "tools": [tool("read_file")] }),
        Tools::Bad => {
            let mut bad = tool("memory_query");
            bad["inputSchema"] = json!({ "type": "object", "anyOf": [{ "required": ["a"] }] });
            json!({ "tools": [tool("read_file"), bad] })
        }
        Tools::Paged => match cursor {
            "" => json!({ "tools": [tool("one")], "nextCursor": "2" }),
            "2" => json!({ "tools": [tool("two")], "nextCursor": "3" }),
            _ => json!({ "tools": [tool("three")] }),
        },
        Tools::Circle => json!({ "tools": [tool("one")], "nextCursor": "again" }),
        Tools::Silent => return None,
        Tools::None => {
            return Some(
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } })
                    .to_string(),
            );
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}
