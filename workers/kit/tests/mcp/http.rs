use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::Secret;
use kit::http::{Limits, serve};
use kit::tasks::Tasks;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::worker::{Watched, soon, watched};

pub(crate) struct Server {
    address: SocketAddr,
    pub(crate) worker: Arc<Watched>,
    stop: Option<oneshot::Sender<()>>,
    tasks: Tasks,
}

pub(crate) fn server(limits: Limits) -> Server {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (worker, tasks) = (watched(), Tasks::new());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = Arc::clone(&worker);
    tasks.start(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        serve(listener, Secret::new("right"), served, limits, stopped).await.unwrap();
    });
    Server { address, worker, stop: Some(stop), tasks }
}

/// A request that would be served as it is; tests change one thing.
pub(crate) struct Request {
    line: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Request {
    pub(crate) fn new(method: &str, params: Value) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = [
            ("host", "localhost".to_owned()),
            ("authorization", "Bearer right".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
            ("connection", "close".to_owned()),
        ];
        Self { line: "POST /".to_owned(), headers: headers.to_vec(), body }
    }

    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::new("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub(crate) fn modern(method: &str, mut params: Value) -> Self {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let name = ["name", "uri", "taskId"].iter().find_map(|member| params[member].as_str());
        let name = name.unwrap_or_default().to_owned();
        let request = Self::new(method, params).with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
        if name.is_empty() { request } else { request.with("mcp-name", &name) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(present, _)| *present != name);
        self
    }

    pub(crate) fn line(self, line: &str) -> Self {
        Self { line: line.to_owned(), ..self }
    }

    pub(crate) fn body(self, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn text(&self) -> &str {
        &self.body
    }

    pub(crate) fn head(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{} HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n", self.line, self.body.len())
    }
}

impl Server {
    pub(crate) async fn send(&self, request: &Request) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.head().as_bytes()).await.unwrap();
        // A refusal may come before the body is read.
        let _ = stream.write_all(request.body.as_bytes()).await;
        stream
    }

    /// Status and body of the answer.
    pub(crate) async fn ask(&self, request: Request) -> (u16, String) {
        soon(async { answer(self.send(&request).await).await }).await
    }

    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        soon(self.tasks.drained()).await;
    }
}

pub(crate) async fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

pub(crate) fn error_code(body: &str) -> i64 {
    serde_json::from_str::<Value>(body).unwrap()["error"]["code"].as_i64().expect(body)
}

fn text(body: &str) -> String {
    let answer: Value = serde_json::from_str(body).unwrap();
    answer["result"]["content"][0]["text"].as_str().expect(body).to_owned()
}

#[tokio::test]
async fn nothing_is_looked_at_before_the_secret() {
    let server = server(Limits::default());
    let ping = || Request::new("ping", json!({}));
    assert_eq!(server.ask(ping()).await.0, 200);
    for wrong in ["Bearer wrong", "Bearer righ", "Bearer rightt", "Bearer ", "Bearer", "right", "Basic right", ""] {
        let request = ping().without("authorization").with("authorization", wrong);
        assert_eq!(server.ask(request).await.0, 401, "{wrong}");
    }
    assert_eq!(server.ask(ping().with("authorization", "Bearer right")).await.0, 401, "twice");
    for odd in [
        ping().line("GET /"),
        ping().line("GET /barred"),
        ping().line("POST /nowhere"),
        ping().body("{"),
        ping().with("origin", "http://x"),
    ] {
        assert_eq!(server.ask(odd.without("authorization")).await.0, 401);
    }
    assert_eq!(server.ask(ping().without("authorization").with("authorization", "bearer right")).await.0, 200);
    server.end().await;
}

#[tokio::test]
async fn method_path_host_and_origin_are_what_an_edge_sends() {
    let server = server(Limits::default());
    let ping = || Request::new("ping", json!({}));
    for (request, status) in [
        (ping().line("POST /mcp"), 200),
        (ping().line("POST /other"), 404),
        (ping().line("GET /"), 405),
        (ping().line("DELETE /"), 405),
        (ping().without("host").with("host", "127.0.0.1:80"), 200),
        (ping().without("host").with("host", "evil.example"), 403),
        (ping().without("host").with("host", "rebind.example:8080"), 403),
        (ping().without("host").with("host", "127.0.0.1.rebind.example"), 403),
        (ping().with("origin", "http://localhost"), 403),
        (ping().without("content-type").with("content-type", "text/plain"), 415),
        (ping().with("x-playground-tenant", "a"), 200),
        (ping().with("x-playground-tenant", ""), 400),
        (ping().with("x-playground-tenant", "a").with("x-playground-tenant", "a"), 400),
    ] {
        let named = format!("{:?} {:?}", request.line, request.headers);
        assert_eq!(server.ask(request).await.0, status, "{named}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_edge_may_ask_whom_the_worker_refuses() {
    let server = server(Limits::default());
    let ping = || Request::new("ping", json!({}));
    assert_eq!(server.ask(ping().line("GET /barred")).await, (200, json!({ "tenants": ["mallory"] }).to_string()));
    assert_eq!(server.ask(ping().line("POST /barred")).await.0, 404);
    server.end().await;
}

#[tokio::test]
async fn a_body_that_is_no_message_is_answered_in_json() {
    let server = server(Limits::default());
    let ping = || Request::new("ping", json!({}));
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("{}", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
    ] {
        let (status, answer) = server.ask(ping().body(body)).await;
        assert_eq!((status, error_code(&answer)), (400, code), "{body}: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    let server = server(Limits { body: 2000, ..Limits::default() });
    let sized = |length: usize| {
        let request = Request::call("say", json!({ "text": "" }));
        let padding = " ".repeat(length - request.body.len());
        let body = request.body.clone() + &padding;
        request.body(body)
    };
    assert_eq!(server.ask(sized(2000)).await.0, 200);
    let (status, answer) = server.ask(sized(2001)).await;
    assert_eq!((status, error_code(&answer)), (413, -32600));
    server.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_and_a_head_that_does_not_end_are_given_up() {
    let short = Duration::from_millis(100);
    let server = server(Limits { read: short, head: short, ..Limits::default() });
    let request = Request::call("say", json!({}));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.head().as_bytes()).await.unwrap();
    assert_eq!(soon(answer(stream)).await.0, 408);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let mut rest = Vec::new();
    soon(stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 2"));
    server.end().await;
}

#[tokio::test]
async fn a_connection_more_than_the_bound_waits_for_a_slot() {
    let server = server(Limits { connections: 1, ..Limits::default() });
    let waiting = server.send(&Request::call("wait", json!({}))).await;
    soon(server.worker.begun.subscribe().wait_for(|begun| *begun == 1)).await.unwrap();
    let second = server.send(&Request::call("say", json!({ "text": "second" }))).await;
    let mut peeked = [0];
    let early = tokio::time::timeout(Duration::from_millis(100), second.peek(&mut peeked)).await;
    assert!(early.is_err(), "the second connection was served beside the first");
    server.worker.gate.add_permits(1);
    assert_eq!(soon(answer(waiting)).await.0, 200);
    assert_eq!(text(&soon(answer(second)).await.1), "second");
    server.end().await;
}

#[tokio::test]
async fn a_call_more_than_the_bound_is_told_to_wait() {
    let server = server(Limits { calls: 1, ..Limits::default() });
    let waiting = server.send(&Request::call("wait", json!({}))).await;
    soon(server.worker.begun.subscribe().wait_for(|begun| *begun == 1)).await.unwrap();
    let (_, refused) = server.ask(Request::call("say", json!({}))).await;
    assert!(text(&refused).contains("Nothing was started"), "{refused}");
    server.worker.gate.add_permits(1);
    assert_eq!(soon(answer(waiting)).await.0, 200);
    assert_eq!(text(&server.ask(Request::call("say", json!({ "text": "free" }))).await.1), "free");
    server.end().await;
}

#[tokio::test]
async fn an_initialize_that_lacks_something_is_told_what() {
    let server = server(Limits::default());
    let client = json!({ "name": "test", "version": "0" });
    for (params, lacks) in [
        (json!({}), "lack protocolVersion, capabilities, clientInfo"),
        (json!({ "protocolVersion": "2025-11-25", "capabilities": {} }), "lack clientInfo"),
        (
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test" } }),
            "lack clientInfo.version",
        ),
        (json!({ "protocolVersion": 7, "capabilities": {}, "clientInfo": client }), "are not as it defines them"),
    ] {
        let (_, body) = server.ask(Request::new("initialize", params.clone())).await;
        let answer: Value = serde_json::from_str(&body).expect(&body);
        assert_eq!(answer["error"]["code"], -32602, "{params}: {body}");
        assert_eq!(answer["error"]["message"], format!("the params of initialize {lacks}"), "{params}");
    }
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let (status, body) = server.ask(Request::new("initialize", params)).await;
    assert!(status == 200 && body.contains(r#""serverInfo""#), "{body}");
    server.end().await;
}

#[tokio::test]
async fn a_method_that_nobody_knows_is_named() {
    let server = server(Limits::default());
    let request = Request::new("no/such", json!({})).with("mcp-protocol-version", "2025-11-25");
    let (_, body) = server.ask(request).await;
    let answer: Value = serde_json::from_str(&body).expect(&body);
    assert_eq!(answer["error"], json!({ "code": -32601, "message": "method not found: no/such" }), "{body}");
    server.end().await;
}

#[tokio::test]
async fn both_eras_are_served_and_an_unknown_version_gets_the_newest_with_a_handshake() {
    let server = server(Limits::default());
    for (asked, given) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ] {
        let client = json!({ "name": "test", "version": "0" });
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": client });
        let (status, body) = server.ask(Request::new("initialize", params)).await;
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!(given)), "{body}");
        assert_eq!(answer["result"]["instructions"], "Call one.");
    }
    let (_, legacy) =
        server.ask(Request::call("say", json!({ "text": "x" })).with("mcp-protocol-version", "2025-11-25")).await;
    assert!(!legacy.contains("resultType"), "{legacy}");
    let params = json!({ "name": "say", "arguments": { "text": "x" } });
    let (_, modern) = server.ask(Request::modern("tools/call", params)).await;
    assert!(modern.contains(r#""resultType":"complete""#), "{modern}");
    let (status, gone) = server.ask(Request::modern("ping", json!({}))).await;
    assert_eq!((status, error_code(&gone)), (404, -32601));
    server.end().await;
}

#[tokio::test]
async fn a_modern_list_carries_hints_and_a_legacy_one_does_not() {
    let server = server(Limits::default());
    let (_, modern) = server.ask(Request::modern("tools/list", json!({}))).await;
    let result = serde_json::from_str::<Value>(&modern).unwrap()["result"].clone();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(60_000), &json!("public")));
    let (_, legacy) = server.ask(Request::new("tools/list", json!({}))).await;
    assert!(!legacy.contains("ttlMs"), "{legacy}");
    let (_, discovered) = server.ask(Request::modern("server/discover", json!({}))).await;
    let result = serde_json::from_str::<Value>(&discovered).unwrap()["result"].clone();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(60_000), &json!("public")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "watched");
    let carried = json!(["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(result["supportedVersions"], carried, "those that an edge carries, and no older one");
    server.end().await;
}

#[tokio::test]
async fn the_worker_learns_who_calls_and_the_library_never_sees_the_secret() {
    let server = server(Limits::default());
    assert_eq!(text(&server.ask(Request::call("who", json!({}))).await.1), "- -");
    let named =
        Request::call("who", json!({})).with("x-playground-tenant", "ålice b").with("x-playground-reference", "r7");
    assert_eq!(text(&server.ask(named).await.1), "ålice b r7");
    server.end().await;
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol_and_a_failing_tool_a_result() {
    let server = server(Limits::default());
    let (_, unknown) = server.ask(Request::call("nothing", json!({}))).await;
    assert_eq!(error_code(&unknown), -32602);
    server.worker.gate.add_permits(1);
    let (_, failed) = server.ask(Request::call("wait", json!({}))).await;
    assert!(failed.contains(r#""isError":true"#), "{failed}");
    server.end().await;
}

#[tokio::test]
async fn a_tool_that_panics_is_answered_and_the_next_call_works() {
    let server = server(Limits::default());
    let (_, broken) = server.ask(Request::call("break", json!({}))).await;
    assert_eq!(error_code(&broken), -32603);
    assert_eq!(text(&server.ask(Request::call("say", json!({ "text": "on" }))).await.1), "on");
    server.end().await;
}

#[tokio::test]
async fn progress_comes_only_to_who_asked_and_not_too_often() {
    let server = server(Limits::default());
    let (_, silent) = server.ask(Request::call("steps", json!({}))).await;
    assert_eq!(text(&silent), "done");
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": 5 } });
    let (_, told) = server.ask(Request::new("tools/call", params)).await;
    assert_eq!(told.matches("notifications/progress").count(), 1, "{told}");
    assert!(told.contains("\"done\""), "{told}");
    server.end().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_call_in_both_eras() {
    let server = server(Limits::default());
    let modern = Request::modern("tools/call", json!({ "name": "wait", "arguments": {} }));
    for (count, request) in [(1, Request::call("wait", json!({}))), (2, modern)] {
        let stream = server.send(&request).await;
        soon(server.worker.begun.subscribe().wait_for(|begun| *begun == count)).await.unwrap();
        drop(stream);
        soon(server.worker.dropped.subscribe().wait_for(|dropped| *dropped == count)).await.unwrap();
    }
    server.end().await;
}

#[tokio::test]
async fn the_stop_lets_a_running_call_end_and_takes_no_other() {
    let mut server = server(Limits::default());
    let waiting = server.send(&Request::call("wait", json!({}))).await;
    soon(server.worker.begun.subscribe().wait_for(|begun| *begun == 1)).await.unwrap();
    drop(server.stop.take());
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    soon(refused).await;
    server.worker.gate.add_permits(1);
    assert_eq!(soon(answer(waiting)).await.0, 200);
    server.end().await;
}

#[tokio::test]
async fn a_call_that_outlasts_the_drain_is_dropped() {
    let mut server = server(Limits { drain: Duration::from_millis(50), ..Limits::default() });
    let _waiting = server.send(&Request::call("wait", json!({}))).await;
    soon(server.worker.begun.subscribe().wait_for(|begun| *begun == 1)).await.unwrap();
    drop(server.stop.take());
    soon(server.worker.dropped.subscribe().wait_for(|dropped| *dropped == 1)).await.unwrap();
    server.end().await;
}

#[tokio::test]
async fn a_worker_is_not_served_beyond_this_machine() {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let served = serve(listener, Secret::new("right"), watched(), Limits::default(), std::future::pending()).await;
    assert_eq!(served.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
