//! 2026-07-28: what a request has to say of itself, and what becomes of one that does.

use serde_json::json;

use super::super::setting::{MODERN, MODERN_LIST, Setting};
use super::super::talk::ABSENT;
use super::super::worker::{Next, Worker};
use super::{error_of, repeated, stateless};

const VERSION: (&str, &str) = MODERN[0];
const LISTS: (&str, &str) = MODERN[1];

#[tokio::test]
async fn what_is_wrong_with_the_envelope_or_its_headers_has_its_status_and_code() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let body = |meta: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{meta}}}}}"#);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities""#;
    let other = MODERN_LIST.replace("2026-07-28", "2027-01-01");
    for (what, headers, body, code) in [
        ("no version header", vec![LISTS], MODERN_LIST.to_owned(), -32020),
        ("a header of sessions", vec![("mcp-protocol-version", "2025-11-25"), LISTS], MODERN_LIST.to_owned(), -32020),
        ("another header", vec![("mcp-protocol-version", "2027-01-01"), LISTS], MODERN_LIST.to_owned(), -32020),
        ("another body", vec![VERSION, LISTS], other.clone(), -32020),
        ("a version of nobody", vec![("mcp-protocol-version", "2027-01-01"), LISTS], other, -32022),
        ("no method header", vec![VERSION], MODERN_LIST.to_owned(), -32020),
        ("another method", vec![VERSION, ("mcp-method", "tools/call")], MODERN_LIST.to_owned(), -32020),
        ("another letter case", vec![VERSION, ("mcp-method", "TOOLS/LIST")], MODERN_LIST.to_owned(), -32020),
        ("the method twice", vec![VERSION, LISTS, LISTS], MODERN_LIST.to_owned(), -32020),
        ("no envelope", vec![VERSION, LISTS], body(""), -32602),
        ("no version", vec![VERSION, LISTS], body(&format!(r#""_meta":{{{capabilities}:{{}}}}"#)), -32602),
        ("no capabilities", vec![VERSION, LISTS], body(&format!(r#""_meta":{{{version}}}"#)), -32602),
        ("no object", vec![VERSION, LISTS], body(&format!(r#""_meta":{{{version},{capabilities}:1}}"#)), -32602),
    ] {
        assert_eq!(error_of(&edge.ask(&headers, &body).await), (400, code, json!(7)), "{what}");
    }
    assert_eq!(worker.count(), 0, "nothing of it was sent");
    assert_eq!(edge.ask(&[VERSION, LISTS], MODERN_LIST).await.status, 200);
}

#[tokio::test]
async fn a_version_of_nobody_is_answered_with_those_there_are() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let body = MODERN_LIST.replace("2026-07-28", "2027-01-01");
    let answer = edge.ask(&[("mcp-protocol-version", "2027-01-01"), LISTS], &body).await;
    let supported = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(answer.json()["error"]["data"], json!({ "supported": supported, "requested": "2027-01-01" }));
}

#[tokio::test]
async fn each_method_with_a_name_repeats_it_and_in_base64_too() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut served = 0;
    for (method, member) in [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ] {
        for (name, headers) in [
            // The last is what it says, since the markers are written in small letters.
            ("a", &["a", " a ", "=?base64?YQ==?="][..]),
            ("grüße", &["=?base64?Z3LDvMOfZQ==?="]),
            ("=?BASE64?YQ==?=", &["=?BASE64?YQ==?="]),
        ] {
            let body = stateless("1", method, &format!(r#""{member}":"{name}","#));
            for header in headers {
                let answer = edge.ask(&repeated(method, header), &body).await;
                assert_eq!(answer.status, 200, "{method} {header}: {answer:?}");
                served += 1;
                let arrival = worker.arrivals(served).await.pop().unwrap();
                assert_eq!(arrival.header("mcp-name"), Some(header.trim()), "it passes as it is");
            }
        }
        let body = stateless("1", method, &format!(r#""{member}":"a","#));
        for wrong in
            [ABSENT, "b", "A", "", "=?base64?Yg==?=", "=?base64?YQ?=", "=?base64?Y!==?=", "=?BASE64?YQ==?=", "ä"]
        {
            let answer = edge.ask(&repeated(method, wrong), &body).await;
            assert_eq!(error_of(&answer), (400, -32020, json!(1)), "{method} {wrong}");
        }
    }
    assert_eq!(worker.count(), served);
    let unnamed = edge.ask(&repeated("tools/list", "no matter"), &stateless("1", "tools/list", "")).await;
    assert_eq!(unnamed.status, 200, "a method without a name repeats none");
}

#[tokio::test]
async fn header_names_are_read_in_any_letter_case() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for names in [["mcp-protocol-version", "mcp-method"], ["MCP-PROTOCOL-VERSION", "MCP-METHOD"]] {
        let answer = edge.ask(&[(names[0], VERSION.1), (names[1], LISTS.1)], MODERN_LIST).await;
        assert_eq!(answer.status, 200, "{names:?}");
    }
}

#[tokio::test]
async fn initialize_is_gone_and_what_the_worker_does_not_have_keeps_its_404() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"no"}}}}"#, arrival.json()["id"]);
        let head = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: ";
        talk.send(format!("{head}{}\r\n\r\n{body}", body.len())).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let gone = edge.ask(&repeated("initialize", ""), &stateless("1", "initialize", "")).await;
    assert_eq!((error_of(&gone), worker.count()), ((404, -32601, json!(1)), 0));
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "no/such",
    ] {
        let answer = edge.ask(&repeated(method, ""), &stateless("1", method, "")).await;
        assert_eq!(error_of(&answer), (404, -32601, json!(1)), "{method}");
    }
    assert_eq!(worker.count(), 7, "which methods there are is the worker's to say");
}

#[tokio::test]
async fn who_a_client_says_that_it_is_changes_nothing() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let infos = [
        "",
        r#""io.modelcontextprotocol/clientInfo":{"name":"playground","version":"1"},"#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"admin","tenant":"bob"},"#,
        r#""io.modelcontextprotocol/clientInfo":7,"#,
    ];
    for info in infos {
        let body = MODERN_LIST.replace(r#""_meta":{"#, &format!(r#""_meta":{{{info}"#));
        assert_eq!(edge.ask(MODERN, &body).await.status, 200, "{info}");
    }
    for (arrival, info) in worker.arrivals(infos.len()).await.iter().zip(infos) {
        assert!(std::str::from_utf8(&arrival.body).unwrap().contains(info), "the worker may know");
        assert_eq!(arrival.header("x-playground-tenant"), Some("alice"));
    }
}

#[tokio::test]
async fn a_retry_arrives_as_it_was_sent_and_nothing_is_answered_from_memory() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","ttlMs":60000,"cacheScope":"public"}}}}"#,
            arrival.json()["id"]
        );
        talk.json("Cache-Control: public, max-age=60\r\nETag: \"1\"\r\n", &body).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let params = r#""name":"t", "requestState":"eyJ\/\u00e4=.1.0e2","inputResponses":{"who":{"action":"accept","content":{"n":1.50,"n":2}}},"_x":[ 1 ],"#;
    let traced = r#""_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1","baggage":"b=2","#;
    let body = stateless("\"retry\"", "tools/call", params).replace(r#""_meta":{"#, traced);
    for sent in 1..=3 {
        let answer = edge.ask(&repeated("tools/call", "t"), &body).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        assert_eq!((answer.header("etag"), &answer.json()["id"]), (None, &json!("retry")));
        assert_eq!(worker.arrivals(sent).await[sent - 1].body, body.as_bytes());
    }
    // Not even what everybody may keep is kept here.
    for sent in 4..=6 {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.json()["result"]["cacheScope"], "public");
        assert_eq!(worker.arrivals(sent).await.len(), sent);
    }
}
