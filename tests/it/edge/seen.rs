//! What is counted, after traffic that is known.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::setting::{Edge, INIT, LIST, MODERN, MODERN_LIST, Setting, within};
use super::talk::ABSENT;
use super::worker::{Next, Worker};
use crate::exposition::Exposition;

fn seen(edge: &Edge) -> Exposition {
    Exposition::read(&edge.meters.exposition())
}

/// Waits until a series has this value.
async fn reaches(edge: &Edge, name: &str, labels: &[(&str, &str)], value: f64) {
    within(async {
        while seen(edge).get(name, labels).unwrap_or_default() != value {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn requests(seen: &Exposition, method: &str, outcome: &str) -> f64 {
    seen.get("playground_requests_total", &[("method", method), ("outcome", outcome)]).unwrap_or_default()
}

const CALL: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "dig")];

fn call(tool: &str) -> String {
    MODERN_LIST.replace("tools/list", "tools/call").replace("{\"_meta\"", &format!("{{\"name\":\"{tool}\",\"_meta\""))
}

/// A worker that answers a call by what its tool is called.
async fn moody() -> Worker {
    Worker::scripted(|arrival, mut talk| async move {
        match arrival.json()["params"]["name"].as_str() {
            Some("rpc") => talk.json("", r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#).await,
            Some("tool") => {
                talk.json("", r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}"#).await;
            }
            Some("close") => return Next::Close(talk),
            Some("half") => {
                talk.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{").await;
                return Next::Close(talk);
            }
            _ => talk.reply(&arrival).await,
        }
        Next::Keep(talk)
    })
    .await
}

async fn call_as(edge: &Edge, tool: &str) {
    let headers: Vec<_> = CALL.iter().map(|(name, is)| (*name, if *name == "mcp-name" { tool } else { *is })).collect();
    let mut client = edge.client().await;
    client.post(&headers, &call(tool)).await;
    let _ = client.rest_or_end().await;
}

#[tokio::test]
async fn each_request_is_counted_once_by_its_method_and_how_it_ended() {
    let worker = moody().await;
    let edge = Setting::sandbox(&worker).start().await;
    for _ in 0..3 {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    }
    assert_eq!(edge.ask(&[], INIT).await.status, 200);
    for tool in ["fine", "rpc", "tool", "tool", "close", "half"] {
        call_as(&edge, tool).await;
    }
    assert_eq!(edge.ask(&[("Authorization", ABSENT)], INIT).await.status, 401);
    assert_eq!(edge.ask(&[("Authorization", "Bearer wrong")], INIT).await.status, 401);
    assert_eq!(edge.ask(&[], "{").await.status, 400);
    assert_eq!(edge.ask(&[("mcp-session-id", "nonsense")], LIST).await.status, 404);
    let mut broken = edge.client().await;
    broken.send("no HTTP at all\r\n\r\n").await;
    broken.rest().await;
    reaches(&edge, "playground_requests_total", &[("method", "(none)"), ("outcome", "invalid")], 2.0).await;
    let seen = seen(&edge);
    for (method, outcome, count) in [
        ("tools/list", "ok", 3.0),
        ("tools/list", "invalid", 1.0),
        ("initialize", "ok", 1.0),
        ("tools/call", "ok", 1.0),
        ("tools/call", "rpc_error", 1.0),
        ("tools/call", "tool_error", 2.0),
        ("tools/call", "upstream", 2.0),
        ("(none)", "auth", 2.0),
        ("(none)", "invalid", 2.0),
    ] {
        assert_eq!(requests(&seen, method, outcome), count, "{method} {outcome}");
    }
    let counted = |name: &str, labels: &[(&str, &str)]| seen.value(&format!("playground_{name}"), labels);
    assert_eq!(counted("request_duration_seconds_count", &[("method", "tools/list")]), 4.0);
    // Three lists and five calls had the head of an answer; the opening's is read first, and is not counted.
    assert_eq!(counted("added_latency_seconds_count", &[]), 8.0);
    assert_eq!(counted("tool_calls_total", &[("tenant", "alice"), ("outcome", "tool_error")]), 2.0);
    assert_eq!(counted("auth_failures_total", &[("reason", "none")]), 1.0);
    assert_eq!(counted("auth_failures_total", &[("reason", "unknown")]), 1.0);
    assert_eq!(counted("sessions_refused_total", &[("reason", "unknown")]), 1.0);
    let it = &[("worker", "sandbox"), ("tenant", "")];
    assert_eq!(counted("worker_unknown_outcome_total", it), 2.0);
    assert_eq!(counted("worker_up", it), 1.0);
    let now = kit::clock::since_epoch().as_secs_f64();
    assert!((now - 60.0..=now).contains(&counted("worker_last_ok_timestamp_seconds", it)));
    assert!((now - 60.0..=now).contains(&counted("config_reload_success_timestamp_seconds", &[])));
    assert_eq!(counted("build_info", &[("version", env!("CARGO_PKG_VERSION")), ("backend", "test")]), 1.0);
    edge.presence.set(false);
    assert_eq!(self::seen(&edge).value("playground_worker_up", it), 0.0);
}

#[tokio::test]
async fn each_limit_is_counted_for_its_tenant() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| {
            (config.rates.tenant_per_second, config.rates.tenant_burst) = (1, 2);
            (config.rates.failures_per_minute, config.rates.failures_burst) = (1, 1);
        })
        .start()
        .await;
    for status in [200, 200, 429, 429] {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, status);
    }
    for status in [401, 429] {
        assert_eq!(edge.ask(&[("Authorization", "Bearer wrong")], INIT).await.status, status);
    }
    let bob = [MODERN, &[("authorization", "Bearer tok-bob")]].concat();
    assert_eq!(edge.ask(&bob, MODERN_LIST).await.status, 200);
    let seen = seen(&edge);
    let limited = |tenant, limit| {
        seen.get("playground_rate_limited_total", &[("tenant", tenant), ("limit", limit)]).unwrap_or_default()
    };
    assert_eq!(limited("alice", "requests"), 2.0);
    assert_eq!(limited("bob", "requests"), 0.0);
    assert_eq!(limited("", "failures"), 1.0);
    assert_eq!(requests(&seen, "(none)", "rate"), 3.0);
    assert_eq!(seen.value("playground_table_entries", &[("table", "tenant_rates")]), 2.0);
    assert_eq!(seen.value("playground_table_entries", &[("table", "failing_addresses")]), 1.0);
}

#[tokio::test]
async fn no_word_of_a_client_or_a_worker_makes_a_series() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.tenant_burst, config.rates.tenant_per_second) = (100_000, 100_000))
        .start()
        .await;
    let round = async |from: usize, to: usize| {
        let mut client = edge.client().await;
        for n in from..to {
            let method = format!("evil/{n}");
            let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method.as_str())];
            client.post(&headers, &MODERN_LIST.replace("tools/list", &method)).await;
            client.answer().await;
            let tool = format!("tool-{n}");
            let headers = [CALL[0], CALL[1], ("mcp-name", tool.as_str())];
            client.post(&headers, &call(&tool)).await;
            client.answer().await;
            let bearer = format!("Bearer evil-{n}");
            edge.ask(&[("authorization", bearer.as_str())], INIT).await;
            edge.ask(&[("mcp-session-id", bearer.as_str())], LIST).await;
        }
    };
    round(0, 5).await;
    let before = seen(&edge).count();
    round(5, 60).await;
    let seen = seen(&edge);
    // An address that fails often meets its limit, which is a reason of its own.
    assert!(seen.count() <= before + 2, "{before} {}", seen.count());
    assert_eq!(requests(&seen, "(other)", "ok"), 60.0);
    assert_eq!(requests(&seen, "tools/call", "ok"), 60.0);
    let methods = seen.values_of("playground_requests_total", "method");
    assert!(methods.contains("(other)") && !methods.iter().any(|method| method.contains("evil")), "{methods:?}");
    assert!(!edge.meters.exposition().contains("tool-"));
}

#[tokio::test]
async fn what_there_is_goes_up_and_comes_back_down() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "tools/call" {
            std::future::pending::<()>().await;
        }
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).with(|config| config.exchanges.most = 17).start().await;
    reaches(&edge, "playground_exchanges_limit", &[], 17.0).await;
    let now = seen(&edge);
    for gauge in ["exchanges_in_flight", "connections", "tombstones", "upstream_pooled_connections"] {
        assert_eq!(now.value(&format!("playground_{gauge}"), &[]), 0.0, "{gauge}");
    }
    let session = edge.session().await;
    let alices = &[("tenant", "alice"), ("kind", "public")];
    assert_eq!(seen(&edge).value("playground_sessions", alices), 1.0);
    reaches(&edge, "playground_upstream_pooled_connections", &[], 1.0).await;
    let mut hanging = Vec::new();
    for _ in 0..3 {
        let mut client = edge.client().await;
        client.post(CALL, &call("dig")).await;
        hanging.push(client);
    }
    worker.arrivals(4).await;
    let now = seen(&edge);
    assert_eq!(now.value("playground_exchanges_in_flight", &[]), 3.0);
    assert!(now.value("playground_connections", &[]) >= 3.0);
    assert_eq!(now.value("playground_tasks", &[("group", "doors")]), 1.0);
    drop(hanging);
    reaches(&edge, "playground_exchanges_in_flight", &[], 0.0).await;
    reaches(&edge, "playground_connections", &[], 0.0).await;
    reaches(&edge, "playground_requests_total", &[("method", "tools/call"), ("outcome", "gone")], 3.0).await;
    let mut client = edge.client().await;
    client.request("DELETE", "/mcp", &[("mcp-session-id", &session)], None).await;
    assert_eq!(client.answer().await.status, 204);
    let now = seen(&edge);
    assert_eq!(now.get("playground_sessions", alices), None);
    assert_eq!(now.value("playground_tombstones", &[]), 1.0);
    assert_eq!(requests(&now, "(end)", "ok"), 1.0);
}

#[tokio::test]
async fn a_stream_that_its_client_leaves_has_ended_well() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.method == "GET" {
            talk.events().await;
            talk.chunk(b": hello\n\n").await;
            std::future::pending::<()>().await;
        }
        if arrival.rpc_method() == "initialize" {
            talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.request("GET", "/mcp", &[("mcp-session-id", &session)], None).await;
    client.head().await;
    drop(client);
    reaches(&edge, "playground_requests_total", &[("method", "(stream)"), ("outcome", "ok")], 1.0).await;
}

#[tokio::test]
async fn whoever_asks_is_told_that_the_edge_is_alive_and_nothing_else() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| {
            config.requests.hosts = vec!["edge.example".into()];
            (config.rates.tenant_per_second, config.rates.tenant_burst) = (1, 1);
            (config.rates.probes_per_second, config.rates.probes_burst) = (1, 4);
        })
        .start()
        .await;
    let ask = async |method: &str, headers: &[(&str, &str)]| {
        let mut client = edge.client().await;
        client.request(method, "/healthz", headers, None).await;
        let answer = client.rest_or_end().await;
        String::from_utf8(answer).unwrap()
    };
    // With a tenant's token too it is not that tenant's request.
    let alive = ask("GET", &[]).await;
    assert!(alive.starts_with("HTTP/1.1 200") && alive.ends_with("\r\n\r\nok\n"), "{alive}");
    assert!(!alive.to_lowercase().contains("server:") && !alive.contains("playground"), "{alive}");
    let by_address = ask("GET", &[("Authorization", ABSENT), ("Host", "127.0.0.1:1")]).await;
    assert!(by_address.starts_with("HTTP/1.1 200"), "{by_address}");
    let refused = ask("POST", &[("Authorization", ABSENT)]).await;
    assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET, HEAD"), "{refused}");
    let mut head = edge.client().await;
    head.request("HEAD", "/healthz", &[], None).await;
    assert!(head.head().await.starts_with("HTTP/1.1 200"));
    let too_many = ask("GET", &[]).await;
    assert!(too_many.starts_with("HTTP/1.1 429") && too_many.contains("Too many health checks"), "{too_many}");
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200, "the tenant has its one");
    let seen = seen(&edge);
    assert_eq!(requests(&seen, "(healthz)", "ok"), 3.0);
    assert_eq!(requests(&seen, "(healthz)", "invalid"), 1.0);
    assert_eq!(seen.value("playground_rate_limited_total", &[("tenant", ""), ("limit", "healthz")]), 1.0);
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn an_edge_that_is_stopping_is_not_ready() {
    let worker = Worker::scripted(|_, talk| async move {
        std::future::pending::<()>().await;
        Next::Keep(talk)
    })
    .await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let mut hanging = edge.client().await;
    hanging.post(MODERN, MODERN_LIST).await;
    worker.arrivals(1).await;
    assert!(edge.meters.readiness().is_ready());
    edge.tell_to_stop();
    within(async {
        while edge.meters.readiness().is_ready() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(edge.meters.readiness().is_stopping);
    drop(hanging);
    edge.drained().await;
}

/// An address where nobody listens for now.
async fn vacant() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn plain_at(address: SocketAddr) -> Worker {
    Worker::at(TcpListener::bind(address).await.unwrap(), |arrival, mut talk| async move {
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
}

/// Waits until there is something to be told of.
async fn begun(edge: &Edge) {
    within(async {
        while !edge.meters.readiness().serves {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Whether the one worker is believed to be there; both who tell of it say the same.
fn is_up(edge: &Edge) -> bool {
    let readiness = edge.meters.readiness();
    let [(worker, tenant, is_up)] = readiness.workers.as_slice() else { panic!("{readiness:?}") };
    let labels = [("worker", worker.as_str()), ("tenant", tenant.as_deref().unwrap_or_default())];
    assert_eq!(seen(edge).value("playground_worker_up", &labels), f64::from(u8::from(*is_up)));
    assert_eq!(readiness.is_ready(), *is_up);
    *is_up
}

#[tokio::test]
async fn a_native_worker_is_up_from_an_answer_to_the_next_refusal() {
    let address = vacant().await;
    let edge = Setting::native(&[("alice", &Worker::elsewhere(address))]).start().await;
    begun(&edge).await;
    assert!(!is_up(&edge), "nobody has reached it");
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 503);
    assert!(!is_up(&edge));
    for _ in 0..2 {
        let worker = plain_at(address).await;
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
        assert!(is_up(&edge), "it has answered");
        worker.die().await;
        assert!(is_up(&edge), "nobody has found out");
        edge.ask(MODERN, MODERN_LIST).await;
        assert!(!is_up(&edge), "it has refused");
    }
}

#[tokio::test]
async fn what_the_edge_answers_in_a_workers_stead_does_not_make_it_up() {
    let address = vacant().await;
    let edge = super::bridge::bridged(&[("alice", &Worker::elsewhere(address))]).start().await;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "notifications/cancelled")];
    assert_eq!(edge.ask(&headers, notification).await.status, 202);
    assert!(!is_up(&edge));
    let worker = Worker::at(TcpListener::bind(address).await.unwrap(), |_, mut talk| async move {
        talk.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").await;
        Next::Keep(talk)
    });
    super::bridge::called(&edge, "dig").await;
    worker.arrivals(1).await;
    assert!(!is_up(&edge), "a worker that says that it is not well is none to send calls to");
}

#[tokio::test]
async fn a_bridged_stream_that_breaks_is_counted_as_the_workers_failure() {
    let worker = super::bridge::worker(|arrival, mut talk| async move {
        talk.events().await;
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"half"}}"#;
        talk.chunk(format!("data: {progress}\n\n")).await;
        if arrival.json()["params"]["name"] == "whole" {
            talk.chunk(format!("data: {}\n\n", arrival.result())).await;
            talk.last_chunk().await;
            return Next::Keep(talk);
        }
        Next::Close(talk)
    })
    .await;
    let mut setting = super::bridge::bridged(&[("alice", &worker)]);
    setting.terms.name = Some("delver".to_owned());
    let edge = setting.start().await;
    let meta = r#""io.modelcontextprotocol/logLevel":"info","#;
    let it = &[("worker", "delver"), ("tenant", "alice")];
    for (name, outcome, unknown) in [("whole", "ok", 0.0), ("half", "upstream", 1.0)] {
        let body = super::bridge::request("1", "tools/call", &format!(r#""name":"{name}","arguments":{{}},"#), meta);
        let mut client = edge.client().await;
        client.post(&super::bridge::headers("tools/call", name), &body).await;
        let told = String::from_utf8(client.rest_or_end().await).unwrap();
        assert!(told.starts_with("HTTP/1.1 200") && told.contains("half"), "{told}");
        reaches(&edge, "playground_requests_total", &[("method", "tools/call"), ("outcome", outcome)], 1.0).await;
        assert_eq!(seen(&edge).value("playground_worker_unknown_outcome_total", it), unknown, "{name}");
    }
}
