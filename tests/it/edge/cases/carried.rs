//! What goes along to the worker and back, and what does not.

use std::collections::BTreeSet;

use crate::edge::multiplexed::Multiplexed;
use crate::edge::setting::{INIT, INTERNAL, LIST, MODERN, MODERN_LIST, Setting};
use crate::edge::talk::ABSENT;
use crate::edge::worker::{Next, Worker};

fn names(head: &str) -> BTreeSet<String> {
    head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_lowercase())).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What a client may add and a worker must not see.
const ADDED: &[(&str, &str)] = &[
    ("Cookie", "a=b"),
    ("Proxy-Authorization", "Basic eDp5"),
    ("Proxy-Connection", "keep-alive"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("Trailer", "X-After"),
    ("Upgrade", "websocket"),
    ("Connection", "keep-alive, X-Named, X-Playground-Tenant"),
    ("X-Named", "1"),
    ("X-Playground-Tenant", "bob"),
    ("X-Playground-Reference", "0000000000"),
    ("X-Forwarded-For", "1.2.3.4"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "http"),
    ("X-Real-IP", "1.2.3.4"),
    ("Forwarded", "for=1.2.3.4;host=evil.example"),
    ("X-Tenant", "bob"),
    ("Referer", "https://a.example/?secret"),
    ("User-Agent", "x"),
    ("Via", "1.1 x"),
];

#[tokio::test]
async fn a_worker_gets_the_edges_headers_and_none_that_a_client_made_up() {
    let ours = ["accept", "authorization", "content-length", "content-type", "host", "mcp-protocol-version"];
    let labels = ["x-playground-reference", "x-playground-tenant"];
    let worker = Worker::plain().await;
    for (setting, more) in [(Setting::sandbox(&worker), &labels[..]), (Setting::native(&[("alice", &worker)]), &[][..])]
    {
        let edge = setting.start().await;
        let session = edge.session().await;
        let legacy = [("Mcp-Session-Id", session.as_str())];
        for (headers, body, mirrored) in [(MODERN, MODERN_LIST, &["mcp-method"][..]), (&legacy, LIST, &[])] {
            let before = worker.count();
            assert_eq!(edge.ask(&[headers, ADDED].concat(), body).await.status, 200);
            let arrival = &worker.arrivals(before + 1).await[before];
            assert_eq!(names(&arrival.head), set(&[&ours, more, mirrored].concat()), "{}", arrival.head);
            assert_eq!(arrival.header("authorization"), Some(&*format!("Bearer {INTERNAL}")));
            assert_eq!(arrival.header("x-playground-tenant"), (!more.is_empty()).then_some("alice"));
            assert_ne!(arrival.header("x-playground-reference"), Some("0000000000"));
            assert!(!arrival.head.contains("tok-alice") && !arrival.head.contains("evil"), "{}", arrival.head);
        }
    }
}

#[tokio::test]
async fn a_client_gets_the_edges_headers_and_none_of_the_workers_own() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        let more = "Connection: keep-alive, X-Named\r\nKeep-Alive: timeout=5\r\nX-Named: 1\r\nProxy-Authenticate: Basic\r\n\
                    Set-Cookie: a=b\r\nServer: w\r\nX-Powered-By: w\r\nLocation: http://127.0.0.1:1/\r\nAlt-Svc: h3=\":1\"\r\n\
                    Access-Control-Allow-Origin: *\r\nMcp-Session-Id: UPSTREAM-SECRET\r\nX-Playground-Tenant: alice\r\n\
                    Cache-Control: public, max-age=9\r\nWWW-Authenticate: Bearer\r\nVia: 1.1 w\r\n";
        talk.json(more, &arrival.result()).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let within = [("Mcp-Session-Id", session.as_str())];
    for (headers, body) in [(MODERN, MODERN_LIST), (&within, LIST)] {
        let answer = edge.ask(headers, body).await;
        assert_eq!(names(&answer.head), set(&["cache-control", "content-length", "content-type", "date"]));
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    }
}

#[tokio::test]
async fn the_version_header_is_checked_but_for_initialize_and_the_worker_gets_the_negotiated_one() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let good = [ABSENT, "2025-03-26", "2025-06-18", "2025-11-25"];
    for version in good.into_iter().chain(["2024-11-05", "garbage", "", "2025-06-18 "]) {
        let opened = edge.ask(&[("MCP-Protocol-Version", version)], INIT).await;
        assert_eq!(opened.status, 200, "initialize with {version:?}: {opened:?}");
        assert_eq!(worker.arrivals(1).await[worker.count() - 1].header("mcp-protocol-version"), None);
    }
    let confused = edge.ask(&[("MCP-Protocol-Version", "2026-07-28")], INIT).await;
    assert_eq!((confused.status, confused.code()), (400, -32020), "that version has no initialize");
    let list = async |version| edge.ask(&[("Mcp-Session-Id", &session), ("MCP-Protocol-Version", version)], LIST).await;
    for version in good {
        assert_eq!(list(version).await.status, 200, "{version:?}");
        let arrived = worker.arrivals(1).await;
        assert_eq!(arrived[arrived.len() - 1].header("mcp-protocol-version"), Some("2025-06-18"), "{version:?}");
    }
    let before = worker.count();
    for (version, code) in [("2024-11-05", -32600), ("garbage", -32600), ("", -32600), ("2026-07-28", -32602)] {
        let refused = list(version).await;
        assert_eq!((refused.status, refused.code()), (400, code), "{version:?}: {refused:?}");
    }
    let twice = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-06-18")];
    let twice = [&twice[..], &twice[1..]].concat();
    assert_eq!(edge.ask(&twice, LIST).await.status, 400);
    assert_eq!(worker.count(), before);
}

#[tokio::test]
async fn a_stream_is_had_by_whoever_accepts_one_and_the_worker_always_hears_the_same() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.method == "GET" {
            talk.events().await;
            talk.last_chunk().await;
        } else {
            talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let served = [ABSENT, "*/*", "text/*", "text/event-stream", "TEXT/Event-Stream;q=0.1", "a/b, text/event-stream"];
    for accept in served {
        let answer = super::ended::by(&edge, "GET", &[("Mcp-Session-Id", &session), ("Accept", accept)]).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")), "{accept}");
    }
    for arrival in worker.arrivals(1 + served.len()).await.iter().skip(1) {
        assert_eq!(arrival.header("accept"), Some("text/event-stream"));
    }
    for accept in ["application/json", "text/html", "text/event-stream;q=0", "text/event-stream;q=0, */*"] {
        let answer = super::ended::by(&edge, "GET", &[("Mcp-Session-Id", &session), ("Accept", accept)]).await;
        assert_eq!((answer.status, answer.code()), (406, -31406), "{accept}");
    }
    assert_eq!(worker.count(), 1 + served.len());
}

#[tokio::test]
async fn mirrored_headers_that_lie_lack_or_repeat_are_refused_before_the_worker_hears_of_them() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let body = MODERN_LIST.replace("tools/list", "tools/call").replace("\"params\":{", "\"params\":{\"name\":\"läs\",");
    let version = ("mcp-protocol-version", "2026-07-28");
    let (method, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?bMOkcw==?="));
    assert_eq!(edge.ask(&[version, method, name], &body).await.status, 200);
    let arrival = &worker.arrivals(1).await[0];
    assert_eq!((arrival.header("mcp-method"), arrival.header("mcp-name")), (Some(method.1), Some(name.1)));
    for headers in [
        &[version, name][..],
        &[version, method],
        &[version, method, method, name],
        &[version, method, name, name],
        &[version, ("Mcp-Method", "tools/list"), name],
        &[version, ("Mcp-Method", "subscriptions/listen"), name],
        &[version, ("Mcp-Method", "TOOLS/CALL"), name],
        &[version, ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?="), name],
        &[version, method, ("Mcp-Name", "other")],
        &[version, method, ("Mcp-Name", "=?base64?b3RoZXI=?=")],
        &[version, method, ("Mcp-Name", "=?base64?bMOkcw?=")],
        &[version, method, ("Mcp-Name", "bMOkcw==")],
        &[version, method, ("Mcp-Name", "")],
        &[method, name],
    ] {
        let refused = edge.ask(headers, &body).await;
        assert_eq!(
            (refused.status, refused.code(), refused.json()["id"].clone()),
            (400, -32020, 7.into()),
            "{headers:?}"
        );
    }
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn a_redirect_of_the_workers_is_no_answer_and_nobody_follows_it() {
    let elsewhere = Worker::plain().await;
    let address = elsewhere.address;
    for status in [301, 302, 303, 307, 308] {
        let worker = Worker::scripted(move |_, mut talk| async move {
            talk.send(format!("HTTP/1.1 {status} X\r\nLocation: http://{address}/mcp/\r\nContent-Length: 0\r\n\r\n"))
                .await;
            Next::Keep(talk)
        })
        .await;
        let edge = Setting::sandbox(&worker).start().await;
        let answer = edge.ask(MODERN, MODERN_LIST).await;
        assert_eq!((answer.status, answer.header("location"), worker.count()), (502, None, 1), "{status}");
        assert!(!answer.text().contains(&address.port().to_string()), "{answer:?}");
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn both_spellings_of_the_endpoint_are_served_without_a_redirect() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for path in ["/mcp", "/mcp/", "/"] {
        let mut client = edge.client().await;
        client.request("POST", path, MODERN, Some(MODERN_LIST)).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("location")), (200, None), "{path}");
    }
    assert!(worker.arrivals(3).await.iter().all(|arrival| arrival.body == MODERN_LIST.as_bytes()));
}

#[tokio::test]
async fn a_worker_that_is_strict_about_its_host_is_content_whatever_name_the_edge_was_called_by() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        // A worker on loopback knows itself by its address alone; what stands elsewhere in the head is a claim.
        let own = talk.address().to_string();
        if arrival.header("host") == Some(&own)
            && !arrival.head.contains("example")
            && arrival.header("origin").is_none()
        {
            talk.reply(&arrival).await;
        } else {
            talk.send("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n").await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker)
        .with(|config| config.requests.origins = vec!["https://app.example".into()])
        .start()
        .await;
    for headers in [&[][..], &[("Host", "mcp.example:8443")], &[("Origin", "https://app.example")]] {
        assert_eq!(edge.ask(&[MODERN, headers].concat(), MODERN_LIST).await.status, 200, "{headers:?}");
    }
    let mut client = Multiplexed::connect(edge.address).await;
    assert_eq!(client.post(MODERN, MODERN_LIST).await.status(), 200);
    assert_eq!(worker.count(), 4);
}
