//! A native worker that is as strict as `faculties mcp`: what that one refuses, this one refuses too.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::process::PATIENCE;

const MOST_SESSIONS: usize = 64;
const VERSION: &str = "2025-06-18";

/// One tenant's worker with its own data, behind its own internal token.
pub(crate) struct FacultiesWorker {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Each session, and whether it has said `notifications/initialized`.
    sessions: HashMap<String, bool>,
    opened: u64,
    files: Vec<String>,
    /// Every head that came, in the order of arrival.
    heads: Vec<String>,
    open: Vec<TcpStream>,
}

impl FacultiesWorker {
    pub(crate) fn start(token: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.lock().expect("no panic").open.push(stream.try_clone().expect("cloned"));
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, token, &shared));
            }
        });
        Self { address, state }
    }

    /// What a restart does: connections end, sessions are forgotten, the data stay. It has taken long enough for the
    /// other side to see its connections end.
    pub(crate) fn restart(&self) {
        let open = {
            let mut state = self.state();
            state.sessions.clear();
            std::mem::take(&mut state.open)
        };
        for mut stream in open {
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            // The other side may have closed it before.
            let _ = stream.shutdown(Shutdown::Write);
            assert!(!matches!(stream.read(&mut [0]), Ok(1)), "nothing is under way");
        }
    }

    /// What `files_add` was called with, each time that it was carried out.
    pub(crate) fn files(&self) -> Vec<String> {
        self.state().files.clone()
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.state().heads.clone()
    }

    /// Waits until a session has been ended here.
    pub(crate) fn was_left(&self) {
        let began = kit::clock::now();
        while !self.heads().iter().any(|head| head.starts_with("DELETE")) {
            assert!(kit::clock::now() - began < PATIENCE, "no session was ended: {:?}", self.heads());
            std::thread::yield_now();
        }
    }

    pub(crate) fn sessions(&self) -> usize {
        self.state().sessions.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }
}

struct Asked {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

struct Reply {
    status: u16,
    more: String,
    body: String,
}

impl Reply {
    fn bare(status: u16) -> Self {
        Self { status, more: String::new(), body: String::new() }
    }

    fn json(status: u16, body: String) -> Self {
        Self { status, more: "Content-Type: application/json\r\n".into(), body }
    }

    fn error(id: &str, code: i32, text: &str) -> Self {
        Self::json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{text}"}}}}"#))
    }

    fn result(id: &str, result: &str) -> Self {
        Self::json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }
}

fn serve(stream: TcpStream, token: &str, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader, state) {
        let last = asked.header("connection") == Some("close");
        let reply = decide(&asked, token, &mut state.lock().expect("no panic"));
        let head = format!(
            "HTTP/1.1 {} x\r\nCache-Control: no-store\r\n{}Content-Length: {}\r\n\r\n",
            reply.status,
            reply.more,
            reply.body.len()
        );
        if reader.get_mut().write_all(format!("{head}{}", reply.body).as_bytes()).is_err() || last {
            break;
        }
    }
    let _ = reader.get_ref().shutdown(Shutdown::Both);
}

fn decide(asked: &Asked, token: &str, state: &mut State) -> Reply {
    if asked.path != "/" {
        return Reply::bare(404);
    }
    if asked.header("authorization") != Some(format!("Bearer {token}").as_str()) {
        return Reply { more: "WWW-Authenticate: Bearer\r\n".into(), ..Reply::bare(401) };
    }
    if asked.header("origin").is_some() {
        return Reply::bare(403);
    }
    if asked.header("mcp-protocol-version").is_some_and(|version| version != VERSION) {
        return Reply::bare(400);
    }
    match asked.method.as_str() {
        "POST" => post(asked, state),
        "DELETE" => match asked.header("mcp-session-id") {
            None => Reply::bare(400),
            Some(session) if state.sessions.remove(session).is_some() => Reply::bare(204),
            Some(_) => Reply::bare(404),
        },
        _ => Reply { more: "Allow: POST, DELETE\r\n".into(), ..Reply::bare(405) },
    }
}

fn post(asked: &Asked, state: &mut State) -> Reply {
    if asked.header("content-type") != Some("application/json") || asked.header("content-encoding").is_some() {
        return Reply::bare(415);
    }
    let accept = asked.header("accept").unwrap_or_default();
    if !["application/json", "text/event-stream"].iter().all(|kind| accept.contains(kind)) {
        return Reply::bare(406);
    }
    if serde_json::from_slice::<Distinct>(&asked.body).is_err() {
        return Reply::json(
            400,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#.into(),
        );
    }
    // The id goes back as it was written: no number is too large for it.
    let raw: HashMap<String, Box<RawValue>> = match serde_json::from_slice(&asked.body) {
        Ok(raw) => raw,
        Err(_) => return Reply::error("null", -32600, "no batches"),
    };
    let member = |name: &str| raw.get(name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let method = member("method").and_then(|method| method.as_str().map(str::to_owned)).unwrap_or_default();
    let params = member("params").unwrap_or_default();
    let id = raw.get("id").map(|id| id.get());
    if id.is_some_and(|id| !id.starts_with('"') && !id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')) {
        return Reply::error("null", -32600, "the id is a string or an integer");
    }
    if method == "initialize" && asked.header("mcp-session-id").is_none() {
        return initialize(id.unwrap_or("null"), &params, state);
    }
    let Some(session) = asked.header("mcp-session-id") else {
        return Reply::bare(400);
    };
    let Some(initialized) = state.sessions.get_mut(session) else {
        return Reply::bare(404);
    };
    let Some(id) = id else {
        *initialized |= method == "notifications/initialized";
        return Reply::bare(202);
    };
    match method.as_str() {
        "initialize" => Reply::error(id, -32600, "initialized before"),
        "ping" => Reply::result(id, "{}"),
        "tools/list" | "tools/call" if !*initialized => Reply::error(id, -32000, "not initialized"),
        "tools/list" => Reply::result(id, r#"{"tools":[{"name":"files_add","inputSchema":{"type":"object"}}]}"#),
        "tools/call" => call(id, &params, state),
        _ => Reply::error(id, -32601, "no such method"),
    }
}

fn initialize(id: &str, params: &Value, state: &mut State) -> Reply {
    let named = |name: &str| params["clientInfo"][name].is_string();
    if !(params["protocolVersion"].is_string()
        && params["capabilities"].is_object()
        && named("name")
        && named("version"))
    {
        return Reply::error(id, -32602, "initialize lacks something");
    }
    if state.sessions.len() >= MOST_SESSIONS {
        return Reply::bare(503);
    }
    state.opened += 1;
    let session = format!("{:064x}", state.opened);
    let info = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"faculties","version":"0"}}"#;
    let mut reply = Reply::result(id, info);
    reply.more.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
    state.sessions.insert(session, false);
    reply
}

fn call(id: &str, params: &Value, state: &mut State) -> Reply {
    if params["name"] == "files_add" {
        state.files.push(params["arguments"]["text"].as_str().unwrap_or_default().to_owned());
    }
    // Odd spacing: bytes are compared, not values.
    let text = serde_json::to_string(&state.files.join(",")).expect("a string");
    Reply::result(id, &format!(r#"{{ "content" : [ {{"type":"text","text":{text}}} ],"isError":false }}"#))
}

fn read(reader: &mut BufReader<TcpStream>, state: &Mutex<State>) -> Option<Asked> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    state.lock().expect("no panic").heads.push(head.clone());
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut asked = Asked { method, path, headers, body: Vec::new() };
    let length = asked.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

/// Any JSON in which no object names a member twice.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Distinct)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON with distinct members")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<Distinct>()?;
            if !names.insert(name) {
                return Err(serde::de::Error::custom("a member appears twice"));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Distinct>()?.is_some() {}
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
}
