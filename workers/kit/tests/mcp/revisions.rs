//! What a worker of the kit owes in each revision of the protocol.

use kit::http::Limits;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::http::{Request, Server, error_code, server};
use crate::worker::soon;

const SESSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A request in each revision with sessions, as an edge sends it.
fn legacy(method: &str, params: &Value) -> [Request; 3] {
    SESSIONS.map(|revision| Request::new(method, params.clone()).with("mcp-protocol-version", revision))
}

/// The same in each revision there is.
fn all(method: &str, params: &Value) -> Vec<Request> {
    legacy(method, params).into_iter().chain([Request::modern(method, params.clone())]).collect()
}

async fn result(server: &Server, request: Request) -> Value {
    let (status, body) = server.ask(request).await;
    let answer: Value = serde_json::from_str(&body).expect(&body);
    assert_eq!((status, answer["result"].is_object()), (200, true), "{body}");
    answer["result"].clone()
}

/// A whole answer, its head and its body.
async fn whole(server: &Server, request: Request) -> (String, String) {
    let mut bytes = Vec::new();
    soon(async { server.send(&request).await.read_to_end(&mut bytes).await }).await.expect("an answer");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn a_ping_is_answered_with_nothing_in_each_revision_that_has_it() {
    let server = server(Limits::default());
    for request in legacy("ping", &json!({})) {
        assert_eq!(result(&server, request).await, json!({}));
    }
    server.end().await;
}

#[tokio::test]
async fn a_notification_is_accepted_without_a_body_in_every_revision() {
    let server = server(Limits::default());
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/unheard-of"] {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": 99 } }).to_string();
        for request in legacy(method, &json!({})) {
            let (head, told) = whole(&server, request.body(body.clone())).await;
            assert!(head.starts_with("http/1.1 202"), "{method}: {head}");
            assert_eq!(told, "", "{method}");
        }
        let modern = Request::modern(method, json!({})).body(body);
        assert_eq!(server.ask(modern).await, (202, String::new()), "{method}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_call_is_answered_as_json_or_where_it_reports_as_a_stream_that_ends_with_the_answer() {
    let server = server(Limits::default());
    for request in all("tools/call", &json!({ "name": "steps", "arguments": {} })) {
        let (head, body) = whole(&server, request).await;
        assert!(head.contains("content-type: application/json"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(&body).expect(&body)["result"]["content"][0]["text"], "done");
    }
    let asked = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "t" } });
    for request in all("tools/call", &asked) {
        let (head, body) = whole(&server, request).await;
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        let messages: Vec<Value> = body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data.trim()).ok())
            .collect();
        let (answer, progress) = messages.split_last().expect("messages");
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("done")), "{body}");
        assert!(!progress.is_empty(), "{body}");
        for told in progress {
            // Nothing but what belongs to the call, and never a request.
            assert_eq!((&told["method"], &told["id"]), (&json!("notifications/progress"), &Value::Null), "{body}");
            assert_eq!(told["params"]["progressToken"], "t", "{body}");
        }
    }
    server.end().await;
}

#[tokio::test]
async fn a_revision_hears_nothing_of_what_came_after_it() {
    let server = server(Limits::default());
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "say", "arguments": {} }))] {
        for request in legacy(method, &params) {
            let told = result(&server, request).await;
            for later in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                assert_eq!(told.get(later), None, "{method}: {told}");
            }
        }
    }
    server.end().await;
}

#[tokio::test]
async fn tools_are_all_that_is_offered_and_the_rest_is_not_found() {
    let server = server(Limits::default());
    let client = json!({ "name": "test", "version": "0" });
    for revision in SESSIONS {
        let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let opened = result(&server, Request::new("initialize", params)).await;
        assert_eq!((&opened["protocolVersion"], &opened["capabilities"]), (&json!(revision), &json!({ "tools": {} })));
    }
    assert_eq!(
        result(&server, Request::modern("server/discover", json!({}))).await["capabilities"],
        json!({ "tools": {} })
    );
    for (method, params) in [
        ("ping", json!({})),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": "x:y" })),
        ("resources/unsubscribe", json!({ "uri": "x:y" })),
        ("tasks/result", json!({ "taskId": "x" })),
        ("tasks/list", json!({})),
        ("tasks/get", json!({ "taskId": "x" })),
        ("tasks/update", json!({ "taskId": "x", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "x" })),
        ("subscriptions/listen", json!({ "notifications": {} })),
        ("no/such", json!({})),
    ] {
        let (status, body) = server.ask(Request::modern(method, params)).await;
        assert_eq!((status, error_code(&body)), (404, -32601), "{method}: {body}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_stateless_result_says_its_type_and_by_whom_it_was_made() {
    let server = server(Limits::default());
    server.worker.gate.add_permits(1);
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "say", "arguments": {} })),
        ("tools/call", json!({ "name": "wait", "arguments": {} })),
    ] {
        let told = result(&server, Request::modern(method, params)).await;
        assert_eq!(told["resultType"], "complete", "{method}");
        assert_eq!(told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "watched", "{method}: {told}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_stateless_call_needs_nothing_before_it_and_is_checked_by_itself() {
    let server = server(Limits::default());
    let call = || Request::modern("tools/call", json!({ "name": "say", "arguments": { "text": "first" } }));
    assert_eq!(result(&server, call()).await["content"][0]["text"], "first", "the first thing that the worker hears");
    for (wrong, code) in [
        (call().without("mcp-protocol-version"), -32020),
        (call().without("mcp-protocol-version").with("mcp-protocol-version", "2025-11-25"), -32020),
        (call().without("mcp-method"), -32020),
        (call().without("mcp-method").with("mcp-method", "tools/list"), -32020),
        (call().without("mcp-name"), -32020),
        (call().without("mcp-name").with("mcp-name", "wait"), -32020),
        (call().body(call().text().replace("io.modelcontextprotocol/clientCapabilities", "x")), -32602),
        (call().body(call().text().replace("io.modelcontextprotocol/protocolVersion", "x")), -32602),
        (
            call()
                .without("mcp-protocol-version")
                .with("mcp-protocol-version", "2027-01-01")
                .body(call().text().replace("2026-07-28", "2027-01-01")),
            -32022,
        ),
    ] {
        let named = format!("{}{}", wrong.head(), wrong.text());
        let (status, body) = server.ask(wrong).await;
        assert_eq!((status, error_code(&body)), (400, code), "{named}: {body}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_cursor_that_was_never_handed_out_is_refused_in_every_revision() {
    let server = server(Limits::default());
    for request in all("tools/list", &json!({ "cursor": "of-nobody" })) {
        let (_, body) = server.ask(request).await;
        assert_eq!(error_code(&body), -32602, "{body}");
    }
    for request in all("tools/list", &json!({})) {
        let list = result(&server, request).await;
        assert_eq!((list["tools"].as_array().map(Vec::len), list.get("nextCursor")), (Some(5), None));
    }
    server.end().await;
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol_in_every_revision() {
    let server = server(Limits::default());
    for request in all("tools/call", &json!({ "name": "nothing", "arguments": {} })) {
        let (_, body) = server.ask(request).await;
        assert_eq!(error_code(&body), -32602, "{body}");
    }
    server.end().await;
}
