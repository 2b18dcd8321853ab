//! What never reaches a worker.

use std::time::Duration;

use super::setting::{INIT, LIST, MODERN, MODERN_LIST, Setting, write_store};
use super::talk::{ABSENT, Client};
use super::worker::Worker;

#[tokio::test]
async fn a_foreign_host_is_misdirected_and_a_malformed_one_is_bad() {
    let worker = Worker::plain().await;
    let edge =
        Setting::sandbox(&worker).with(|config| config.requests.hosts = vec!["mcp.example:8080".into()]).start().await;
    for wrong in ["rebind.example:8080", "127.0.0.1.rebind.example", "mcp.example"] {
        assert_eq!(edge.ask(&[("Host", wrong)], INIT).await.status, 421, "{wrong}");
        let beside = edge.ask(&[("Host", wrong), ("Origin", "http://rebind.example:8080")], INIT).await;
        assert_eq!(beside.status, 403, "{wrong}");
    }
    for bad in ["localhost@mcp.example:8080", "mcp.example:8080, x", "", ABSENT] {
        assert_eq!(edge.ask(&[("Host", bad)], INIT).await.status, 400, "{bad}");
    }
    let twice = edge.ask(&[("Host", "mcp.example:8080"), ("Host", "mcp.example:8080")], INIT).await;
    assert_eq!(twice.status, 400);
    assert_eq!(worker.count(), 0);
    assert_eq!(edge.ask(&[("Host", "MCP.Example:8080")], INIT).await.status, 200);
}

#[tokio::test]
async fn a_page_elsewhere_cannot_call() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let plain = ("Content-Type", "text/plain");
    for origin in ["https://evil.example", "null"] {
        assert_eq!(edge.ask(&[plain, ("Origin", origin)], INIT).await.status, 403, "{origin}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ABSENT] {
        assert_eq!(edge.ask(&[("Content-Type", kind)], INIT).await.status, 415, "{kind}");
        let page = edge.ask(&[("Content-Type", kind), ("Origin", "https://evil.example")], INIT).await;
        assert_eq!(page.status, 403, "{kind}");
    }
    assert_eq!(worker.count(), 0);
    assert_eq!(edge.ask(&[], INIT).await.status, 200, "what no page can send without asking first is served");
}

/// Whatever the edge serves, or another server would.
pub(super) const PATHS: [&str; 27] = [
    "/mcp",
    "/mcp/",
    "//mcp",
    "/MCP",
    "/mcp%2f",
    "/%6dcp",
    "/./mcp",
    "/x/../mcp",
    "/mcp;a",
    "/mcp?x",
    "/mcp_message",
    "/sse",
    "/messages",
    "/metrics",
    "/admin",
    "/status",
    "/debug",
    "/healthz",
    "/register",
    "/token",
    "/authorize",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/acme-challenge/",
    "/",
    "/favicon.ico",
];

#[tokio::test]
async fn every_door_has_the_lock() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "FOO"] {
        for path in PATHS {
            let mut client = edge.client().await;
            let body = (method == "POST").then_some(INIT);
            client.request(method, path, &[("Authorization", ABSENT)], body).await;
            let head = client.head().await;
            let status = super::talk::status(&head);
            // One answer is for everybody, and says nothing but that somebody answers.
            if path == "/healthz" {
                assert_eq!(status, if matches!(method, "GET" | "HEAD") { 200 } else { 405 }, "{method} {path}");
                continue;
            }
            // Where clients look for a way to log in, a demand for a token would send them looking further.
            let is_looked_for =
                path.starts_with("/.well-known/") || ["/register", "/token", "/authorize"].contains(&path);
            let refused = if is_looked_for { 404 } else { 401 };
            assert!(status == refused || status == 405, "{method} {path}: {status}");
            if status == 401 {
                assert_eq!(super::talk::header(&head, "www-authenticate"), Some("Bearer"), "{method} {path}");
            }
        }
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn the_discovery_paths_of_clients_are_plainly_nothing_to_a_caller_who_is_known() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for (method, path) in [("POST", "/register"), ("POST", "/token"), ("GET", "/.well-known/oauth-protected-resource")]
    {
        let mut client = edge.client().await;
        client.request(method, path, &[], (method == "POST").then_some("{}")).await;
        assert_eq!(client.answer().await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_caller_cannot_choose_a_byte_of_the_challenge() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let headers = [
        ("Authorization", ABSENT),
        ("X-Forwarded-Host", r#"a", error="insufficient_scope", scope="admin"#),
        ("Forwarded", "host=evil.example"),
    ];
    let answer = edge.ask(&headers, "").await;
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    assert!(!answer.head.contains("evil") && !answer.text().contains("evil") && !answer.head.contains("scope"));
    let wrong = edge.ask(&[("Authorization", "Bearer nobody")], INIT).await;
    assert_eq!(wrong.header("www-authenticate"), Some(r#"Bearer error="invalid_token""#));
    assert_eq!(wrong.json()["id"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_wrong_token_is_refused_before_a_byte_of_the_body_is_sent() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client
        .send("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        .await;
    assert_eq!(super::talk::status(&client.head().await), 401);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_the_very_next_request() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    assert_eq!(edge.ask(&[], INIT).await.status, 200);
    write_store(&edge.store(), &[("tok-bob", "bob")]);
    assert_eq!(edge.ask(&[], INIT).await.status, 401);
}

#[tokio::test]
async fn accept_is_read_as_media_ranges_and_the_worker_always_gets_both_types() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let served = [
        ABSENT,
        "*/*",
        "application/*",
        "application/json",
        "text/event-stream",
        "application/json;q=0.5, text/event-stream",
        "APPLICATION/JSON",
    ];
    for accept in served {
        assert_eq!(edge.ask(&[("Accept", accept)], INIT).await.status, 200, "{accept}");
    }
    for accept in ["text/html", "application/json;q=0, */*;q=0"] {
        assert_eq!(edge.ask(&[("Accept", accept)], INIT).await.status, 406, "{accept}");
    }
    for arrival in worker.arrivals(served.len()).await {
        assert_eq!(arrival.header("accept"), Some("application/json, text/event-stream"));
    }
}

#[tokio::test]
async fn a_body_at_the_limit_is_served_and_one_byte_more_is_not() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).with(|config| config.requests.most_body_bytes = 1000).start().await;
    let sized = |length: usize| format!("{INIT}{}", " ".repeat(length - INIT.len()));
    assert_eq!(edge.ask(&[], &sized(1000)).await.status, 200);
    let over = edge.ask(&[], &sized(1001)).await;
    assert_eq!(over.status, 413);
    assert!(over.message().contains("1000 bytes"), "{}", over.message());
    let declared = edge.ask(&[("Content-Length", "99999999999")], "").await;
    assert_eq!(declared.status, 413, "at once, with no body sent");
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn a_body_in_chunks_is_cut_soon_after_the_limit() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).with(|config| config.requests.most_body_bytes = 1_000_000).start().await;
    let mut client = edge.client().await;
    client
        .request("POST", "/mcp", &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")], None)
        .await;
    let chunk = [b"10000\r\n".to_vec(), vec![b'a'; 65536], b"\r\n".to_vec()].concat();
    let mut taken = 0;
    while taken < 1024 && client.offer(&chunk).await {
        taken += 1;
    }
    assert!(taken < 1024, "the edge took 64 MiB of a body that may have one");
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_tenant_over_its_rate_is_told_when_to_come_back() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (3, 1))
        .start()
        .await;
    for _ in 0..3 {
        assert_eq!(edge.ask(&[], INIT).await.status, 200);
    }
    let over = edge.ask(&[], INIT).await;
    assert_eq!((over.status, over.code(), over.header("retry-after").is_some()), (429, -31429, true));
    assert_eq!(over.json()["id"], serde_json::Value::Null);
    assert_eq!(edge.ask(&[("Authorization", "Bearer tok-bob")], INIT).await.status, 200);
    assert_eq!(worker.count(), 4);
}

#[tokio::test]
async fn guessing_is_slowed_and_a_valid_token_from_the_same_address_passes() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).with(|config| config.rates.failures_burst = 3).start().await;
    for _ in 0..3 {
        assert_eq!(edge.ask(&[("Authorization", "Bearer guess")], INIT).await.status, 401);
    }
    assert_eq!(edge.ask(&[("Authorization", "Bearer guess")], INIT).await.status, 429);
    assert_eq!(edge.ask(&[], INIT).await.status, 200);
}

#[tokio::test]
async fn an_origin_that_is_listed_gets_its_preflight_and_reads_refusals_too() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| config.requests.origins = vec!["https://app.example".into()])
        .start()
        .await;
    let origin = ("Origin", "https://app.example");
    let mut client = edge.client().await;
    let asks = [origin, ("Authorization", ABSENT), ("Access-Control-Request-Method", "POST")];
    client.request("OPTIONS", "/mcp", &asks, None).await;
    let preflight = client.answer().await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("mcp-session-id"));
    let refused = edge.ask(&[origin, ("Authorization", ABSENT)], INIT).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(refused.header("access-control-expose-headers").unwrap().contains("www-authenticate"));
    client.request("OPTIONS", "/mcp", &[("Origin", "https://evil.example"), asks[2]], None).await;
    assert_eq!(client.answer().await.status, 403);
}

#[tokio::test]
async fn batches_and_broken_json_are_refused_with_their_codes() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for (body, code) in [("[]", -32600), ("{", -32700), (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600)] {
        let answer = edge.ask(&[], body).await;
        assert_eq!((answer.status, answer.code()), (400, code), "{body}");
    }
    let wrong = edge.ask(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "other")], MODERN_LIST).await;
    assert_eq!((wrong.status, wrong.code()), (400, -32020));
    assert_eq!(wrong.json()["id"], 7);
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn heads_have_a_size_and_a_count() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.connections.most_head_bytes, config.connections.most_headers) = (8192, 20))
        .start()
        .await;
    let long = |length: usize| "a".repeat(length);
    assert_eq!(edge.ask(&[("X-Long", &long(7000))], INIT).await.status, 200);
    assert_eq!(edge.ask(&[("X-Long", &long(9000))], INIT).await.status, 431);
    let many = |count: usize| vec![("X-Many", "1"); count];
    assert_eq!(edge.ask(&many(15), INIT).await.status, 200, "with the five that any request here has");
    assert_eq!(edge.ask(&many(16), INIT).await.status, 431);
}

#[tokio::test]
async fn connections_in_all_have_a_limit_and_wait_outside() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).with(|config| config.connections.most = 2).start().await;
    let (first, mut second) = (edge.client().await, edge.client().await);
    second.post(&[], INIT).await;
    assert_eq!(second.answer().await.status, 200);
    let mut third = edge.client().await;
    third.post(&[], INIT).await;
    let early = tokio::time::timeout(Duration::from_millis(100), third.answer()).await;
    assert!(early.is_err(), "a third connection is not served beside two");
    drop(first);
    assert_eq!(third.answer().await.status, 200);
}

#[tokio::test]
async fn a_modern_session_header_is_ignored_and_get_is_not_served_there() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let with_session = [MODERN, &[("mcp-session-id", "whatever")]].concat();
    let answer = edge.ask(&with_session, MODERN_LIST).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(worker.arrivals(1).await[0].header("mcp-session-id"), None);
    let mut client: Client = edge.client().await;
    client.request("GET", "/mcp", &[("mcp-protocol-version", "2026-07-28")], None).await;
    let refused = client.answer().await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    assert_eq!(edge.ask(&[], LIST).await.status, 400, "a legacy call without a session");
}

#[tokio::test]
async fn a_disabled_tenant_is_told_so_whatever_it_asks_and_others_are_served() {
    let worker = Worker::plain().await;
    let setting = Setting::sandbox(&worker);
    let barred = setting.barred.clone();
    let edge = setting.start().await;
    let session = edge.session().await;
    let within = [("mcp-session-id", session.as_str())];
    let bob = [("authorization", "Bearer tok-bob")];
    barred.set([kit::Tenant::parse("alice").unwrap()]);
    let before = worker.count();
    for (headers, body) in [(&[][..], INIT), (&within, LIST), (MODERN, MODERN_LIST)] {
        let refused = edge.ask(headers, body).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (403, None), "{refused:?}");
        assert!(refused.message().contains("This tenant is disabled. Nothing was done."), "{}", refused.message());
    }
    assert_eq!(worker.count(), before);
    assert_eq!(edge.ask(&bob, INIT).await.status, 200);
    barred.set([]);
    assert_eq!(edge.ask(&within, LIST).await.status, 200, "its session has gone on");
}
