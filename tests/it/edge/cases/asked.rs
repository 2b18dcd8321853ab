//! What is refused for its size or its number, and what a page can read of a refusal.

use std::time::Duration;

use crate::edge::setting::{Edge, INIT, LIST, MODERN, MODERN_LIST, Setting, write_store};
use crate::edge::talk::{ABSENT, Answer, Client, status};
use crate::edge::worker::{Next, Worker};

const ORIGIN: (&str, &str) = ("Origin", "https://app.example");

/// An edge for pages of one origin, before a worker that fails as the id says.
async fn failing() -> (Edge, Worker) {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        match arrival.json()["id"].as_u64() {
            Some(500) => talk.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n").await,
            Some(502) => return Next::Close(talk),
            Some(504) => {
                talk.abandoned().await;
                return Next::Close(talk);
            }
            _ => talk.reply(&arrival).await,
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)])
        .with(|config| {
            config.requests.origins = vec![ORIGIN.1.into()];
            config.requests.body_idle = Duration::from_millis(100);
            config.requests.hosts = vec!["edge.example".into()];
            config.rates.failures_burst = 2;
        })
        .bounds(|bounds| bounds.head = Duration::from_millis(100))
        .start()
        .await;
    (edge, worker)
}

fn listed(answer: &Answer, header: &str) -> Vec<String> {
    let mut all: Vec<_> =
        answer.header(header).unwrap_or_default().split(',').map(|name| name.trim().to_lowercase()).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_preflight_needs_no_token_and_allows_all_that_a_client_sends() {
    let (edge, worker) = failing().await;
    for (path, method) in [("/mcp", "POST"), ("/mcp", "GET"), ("/mcp", "DELETE"), ("/", "POST")] {
        let asks = [
            ORIGIN,
            ("Authorization", ABSENT),
            ("Access-Control-Request-Method", method),
            ("Access-Control-Request-Headers", "authorization,content-type,mcp-session-id"),
        ];
        let mut client = edge.client().await;
        client.request("OPTIONS", path, &asks, None).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some(ORIGIN.1)), "{path}");
        assert_eq!(listed(&answer, "access-control-allow-methods"), ["delete", "get", "post"]);
        let headers = listed(&answer, "access-control-allow-headers");
        for wanted in [
            "authorization",
            "content-type",
            "accept",
            "mcp-session-id",
            "mcp-protocol-version",
            "mcp-method",
            "mcp-name",
            "last-event-id",
        ] {
            assert!(headers.iter().any(|allowed| allowed == wanted), "{wanted}: {headers:?}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_page_can_read_every_answer_and_every_refusal() {
    let (edge, _worker) = failing().await;
    let session = edge.session().await;
    let id = |id: u16| MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"));
    let (five, two, four) = (id(500), id(502), id(504));
    let named = ("Mcp-Session-Id", session.as_str());
    type Asked<'a> = (u16, &'a str, &'a str, Vec<(&'a str, &'a str)>, &'a str);
    let modern = |more: &[(&'static str, &'static str)]| [MODERN, more].concat();
    let bob = ("Authorization", "Bearer tok-bob");
    let asked: [Asked<'_>; 19] = [
        (200, "POST", "/mcp", vec![], INIT),
        (200, "POST", "/mcp", modern(&[]), MODERN_LIST),
        (202, "POST", "/mcp", vec![named], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        (400, "POST", "/mcp", vec![], "{"),
        (400, "POST", "/mcp", vec![], LIST),
        (401, "POST", "/mcp", vec![("Authorization", ABSENT)], INIT),
        (401, "POST", "/mcp", vec![("Authorization", "Bearer x")], INIT),
        (403, "POST", "/mcp", vec![named, bob], LIST),
        (404, "POST", "/nothing", vec![], INIT),
        (404, "POST", "/mcp", vec![("Mcp-Session-Id", "x")], LIST),
        (405, "PUT", "/mcp", vec![], ""),
        (406, "POST", "/mcp", vec![("Accept", "text/html")], INIT),
        (408, "POST", "/mcp", vec![("Content-Length", "9")], "{"),
        (413, "POST", "/mcp", vec![("Content-Length", "99999999999")], ""),
        (415, "POST", "/mcp", vec![("Content-Type", "text/plain")], INIT),
        (500, "POST", "/mcp", modern(&[]), &five),
        (502, "POST", "/mcp", modern(&[]), &two),
        (504, "POST", "/mcp", modern(&[]), &four),
        (204, "DELETE", "/mcp", vec![named], ""),
    ];
    for (status, method, path, headers, body) in asked {
        let mut client = edge.client().await;
        client.request(method, path, &[&headers[..], &[ORIGIN]].concat(), Some(body)).await;
        assert_readable(&client.answer().await, status);
    }
    for status in [401, 429] {
        assert_readable(&edge.ask(&[ORIGIN, ("Authorization", "Bearer x")], INIT).await, status);
    }
    edge.presence.set(false);
    assert_readable(&edge.ask(&[MODERN, &[ORIGIN]].concat(), MODERN_LIST).await, 503);
    // Another origin is told nothing that it could read, and no reason.
    let foreign = edge.ask(&[("Origin", "https://evil.example")], INIT).await;
    assert_eq!((foreign.status, foreign.header("access-control-allow-origin")), (403, None));
}

fn assert_readable(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1), "{status}: {answer:?}");
    let exposed = listed(answer, "access-control-expose-headers");
    assert_eq!(exposed, ["mcp-session-id", "retry-after", "www-authenticate"], "{status}");
    assert!(listed(answer, "vary").contains(&"origin".to_owned()), "{status}");
    assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{status}");
    assert!(status != 429 || answer.header("retry-after").is_some());
}

const LIMIT: usize = 4 << 20;

async fn limited() -> (Edge, Worker) {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).with(|config| config.requests.most_body_bytes = LIMIT).start().await;
    (edge, worker)
}

fn assert_too_large(answer: &Answer) {
    assert_eq!((answer.status, answer.code(), answer.header("connection")), (413, -31413, Some("close")), "{answer:?}");
    assert_eq!(answer.json()["error"]["data"]["limit"], LIMIT);
    assert!(answer.message().contains(&format!("{LIMIT} bytes")), "{answer:?}");
}

const CHUNKED: &[(&str, &str)] = &[("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")];

async fn send_chunks(client: &mut Client, bytes: &[u8]) {
    for piece in bytes.chunks(64 * 1024) {
        client.send(format!("{:x}\r\n", piece.len())).await;
        client.send(piece).await;
        client.send("\r\n").await;
    }
}

#[tokio::test]
async fn ten_mebibytes_are_refused_before_they_are_sent_however_they_are_announced() {
    let (edge, worker) = limited().await;
    for length in ["10485760", "4194305", "99999999999"] {
        for expect in [&[][..], &[("Expect", "100-continue")]] {
            let mut client = edge.client().await;
            client.post(&[&[("Content-Length", length)], expect].concat(), "").await;
            assert_too_large(&client.answer().await);
            client.rest().await;
        }
    }
    let beyond = edge.ask(&[("Content-Length", "18446744073709551616")], "").await;
    assert_eq!((beyond.status, beyond.header("connection")), (400, Some("close")), "no number of 64 bits");
    for expect in [&[][..], &[("Expect", "100-continue")]] {
        let mut client = edge.client().await;
        client.request("POST", "/mcp", &[CHUNKED, expect].concat(), None).await;
        if !expect.is_empty() {
            assert_eq!(status(&client.head().await), 100);
        }
        send_chunks(&mut client, &vec![b' '; LIMIT]).await;
        assert!(!client.has_answer(), "as much as is allowed is still welcome");
        client.send("1\r\n \r\n").await;
        assert_too_large(&client.answer().await);
        client.rest().await;
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_served_however_it_is_announced() {
    let (edge, worker) = limited().await;
    let body = format!("{INIT}{}", " ".repeat(LIMIT - INIT.len()));
    let length = LIMIT.to_string();
    assert_eq!(edge.ask(&[], &body).await.status, 200);
    let mut client = edge.client().await;
    client.post(&[("Content-Length", &length), ("Expect", "100-continue")], "").await;
    assert_eq!(status(&client.head().await), 100);
    client.send(&body).await;
    assert_eq!(client.answer().await.status, 200);
    for expect in [&[][..], &[("Expect", "100-continue")]] {
        client.request("POST", "/mcp", &[CHUNKED, expect].concat(), None).await;
        if !expect.is_empty() {
            assert_eq!(status(&client.head().await), 100);
        }
        send_chunks(&mut client, body.as_bytes()).await;
        client.send("0\r\n\r\n").await;
        assert_eq!(client.answer().await.status, 200);
    }
    for arrival in worker.arrivals(4).await {
        assert!(arrival.body == body.as_bytes());
    }
}

#[tokio::test]
async fn a_flood_under_one_token_or_many_is_one_tenants_and_a_new_token_is_no_new_bucket() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)])
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (20, 1))
        .start()
        .await;
    let ask = async |token: &str| {
        edge.ask(&[MODERN, &[("Authorization", &*format!("Bearer {token}"))]].concat(), MODERN_LIST).await
    };
    write_store(&edge.store(), &[("tok-alice", "alice"), ("tok-second", "alice"), ("tok-bob", "bob")]);
    let mut refused = 0;
    for n in 0..60 {
        let answer = ask(if n % 2 == 0 { "tok-alice" } else { "tok-second" }).await;
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some() && answer.code() == -31429, "{answer:?}");
            refused += 1;
        }
    }
    assert!(refused >= 30, "two tokens are one tenant: {refused}");
    write_store(&edge.store(), &[("tok-renewed", "alice"), ("tok-bob", "bob")]);
    assert_eq!(ask("tok-alice").await.status, 401);
    let renewed = async { while ask("tok-renewed").await.status != 429 {} };
    crate::edge::setting::within(renewed).await;
    let served = worker.count();
    for _ in 0..20 {
        assert_eq!(ask("tok-bob").await.status, 200, "bob has his own bucket");
    }
    assert_eq!(worker.count(), served + 20);
}
