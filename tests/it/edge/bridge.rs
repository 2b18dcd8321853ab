//! Modern clients before a worker that knows sessions only, with the edge's sessions in between.

mod held;
mod logs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playground::worker::endpoint::Endpoint;
use playground::worker::terms::Bridge;
use serde_json::{Value, json};

use super::eras::sessions_alone;
use super::setting::{Edge, Setting, within};
use super::talk::{Answer, header};
use super::worker::{Arrival, Next, Talk, Worker};

/// The text of a modern request of the tool `name`.
fn call(id: &str, name: &str, meta: &str) -> String {
    request(id, "tools/call", &format!(r#""name":"{name}","arguments":{{"n":18446744073709551616,"f":1.0e2}},"#), meta)
}

pub(super) fn request(id: &str, method: &str, params: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",{meta}"io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

pub(super) fn headers<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", name),
        ("mcp-param-n", "1"),
        ("mcp-session-id", "of no meaning"),
    ]
}

pub(super) async fn ask(edge: &Edge, token: &str, method: &str, name: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let mut all = headers(method, name);
    all.push(("authorization", &bearer));
    edge.ask(&all, body).await
}

pub(super) async fn called(edge: &Edge, name: &str) -> Answer {
    ask(edge, "tok-alice", "tools/call", name, &call("1", name, "")).await
}

/// Opens sessions S1, S2 and so on; what else arrives is for `script`.
pub(super) async fn worker<F>(script: impl Fn(Arrival, Talk) -> F + Send + Sync + 'static) -> Worker
where
    F: Future<Output = Next> + Send + 'static,
{
    let (opened, script) = (AtomicUsize::new(0), Arc::new(script));
    Worker::scripted(move |arrival, mut talk| {
        assert!(arrival.head.contains(" /mcp HTTP/1.1"), "at the worker's own path: {}", arrival.head);
        let opens = arrival.rpc_method() == "initialize";
        let number = if opens { opened.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let script = Arc::clone(&script);
        async move {
            if opens {
                let told = json!({ "jsonrpc": "2.0", "id": arrival.json()["id"], "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "tasks": {} },
                    "serverInfo": { "name": "old", "version": "3" },
                    "instructions": "be kind",
                }});
                talk.json(&format!("Mcp-Session-Id: S{number}\r\n"), &told.to_string()).await;
                return Next::Keep(talk);
            }
            let is_told = arrival.json()["id"].is_null() || arrival.json()["method"].is_null();
            if arrival.method == "DELETE" || arrival.method == "POST" && is_told {
                talk.reply(&arrival).await;
                return Next::Keep(talk);
            }
            script(arrival, talk).await
        }
    })
    .await
}

/// Answers each request with this `result` or `error`.
async fn answering(answer: &'static str) -> Worker {
    worker(move |arrival, mut talk| async move {
        talk.json("", &format!(r#"{{"jsonrpc":"2.0", "id": {}, {answer}}}"#, arrival.json()["id"])).await;
        Next::Keep(talk)
    })
    .await
}

/// Answers each request with these events, where `ID` stands for its id.
async fn streaming(events: &'static [&'static str]) -> Worker {
    worker(move |arrival, mut talk| async move {
        talk.events().await;
        for event in events {
            let event = event.replace("ID", &arrival.json()["id"].to_string());
            talk.chunk(format!("event: message\r\ndata: {event}\r\n\r\n")).await;
        }
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await
}

pub(super) fn bridged(workers: &[(&'static str, &Worker)]) -> Setting {
    let mut setting = Setting::native(workers).found(sessions_alone());
    setting.terms.bridge = Bridge::Modern;
    setting.terms.path = Endpoint::parse("/mcp").unwrap();
    setting
}

/// Which of the arrivals are of this method, once there is one.
pub(super) async fn of(worker: &Worker, method: &str) -> Vec<Arrival> {
    let mut count = 1;
    loop {
        let arrivals = worker.arrivals(count).await;
        count = arrivals.len() + 1;
        let found: Vec<_> =
            arrivals.into_iter().filter(|arrival| arrival.rpc_method() == method || arrival.method == method).collect();
        if !found.is_empty() {
            return found;
        }
    }
}

/// The events of a stream.
fn events(answer: &Answer) -> Vec<Value> {
    answer
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

const SERVER: &str = "io.modelcontextprotocol/serverInfo";

#[tokio::test]
async fn a_modern_request_becomes_one_of_a_session_and_the_rest_of_it_stays_byte_for_byte() {
    let worker = answering(r#""result":{"content":[], "n": 18446744073709551616}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let meta = r#""traceparent":"00-ab-cd-01", "progressToken":"p",  "mine/x":[1.00],"#;
    let answer = ask(&edge, "tok-alice", "tools/call", "t", &call("123456789012345678901234567890", "t", meta)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.text(),
        format!(
            r#"{{"jsonrpc":"2.0", "id": 123456789012345678901234567890, "result":{{"_meta":{{"{SERVER}":{{"name":"old","version":"3"}}}},"resultType":"complete","content":[], "n": 18446744073709551616}}}}"#
        )
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!((answer.header("mcp-session-id"), answer.header("cache-control")), (None, Some("no-store")));

    let arrivals = worker.arrivals(3).await;
    let methods: Vec<_> = arrivals.iter().map(Arrival::rpc_method).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
    let opening = arrivals[0].json();
    assert_eq!(
        (&opening["params"]["capabilities"], &opening["params"]["protocolVersion"]),
        (&json!({}), &json!("2025-11-25"))
    );
    assert_eq!(opening["params"]["clientInfo"]["name"], "playground");
    assert_eq!(arrivals[0].header("mcp-session-id"), None);
    for within in &arrivals[1..] {
        assert_eq!(within.header("mcp-session-id"), Some("S1"));
        assert_eq!(within.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    let sent = &arrivals[2];
    for absent in ["mcp-method", "mcp-name", "mcp-param-n"] {
        assert_eq!(sent.header(absent), None, "{absent}");
    }
    assert_eq!(
        String::from_utf8(sent.body.clone()).unwrap(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"n":18446744073709551616,"f":1.0e2},"_meta":{"traceparent":"00-ab-cd-01","progressToken":2,"mine/x":[1.00]}}}"#
    );
}

#[tokio::test]
async fn lists_and_resources_say_that_they_may_not_be_kept_and_calls_do_not() {
    let worker = answering(r#""result":{"_meta":{"own":1},"cacheScope":"public"}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    for (method, params) in [
        ("tools/list", ""),
        ("prompts/list", ""),
        ("resources/list", ""),
        ("resources/templates/list", ""),
        ("resources/read", r#""uri":"t","#),
    ] {
        let answer = ask(&edge, "tok-alice", method, "t", &request("7", method, params, "")).await.json();
        let result = &answer["result"];
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "{method}");
        assert_eq!(result["_meta"], json!({ "own": 1, SERVER: { "name": "old", "version": "3" } }));
    }
    for (method, params) in [("prompts/get", r#""name":"t","#), ("completion/complete", "")] {
        let answer = ask(&edge, "tok-alice", method, "t", &request("7", method, params, "")).await.json();
        assert_eq!((&answer["result"]["resultType"], &answer["result"]["ttlMs"]), (&json!("complete"), &Value::Null));
    }
    assert_eq!(of(&worker, "initialize").await.len(), 1, "one session for all of them");
}

#[tokio::test]
async fn discovery_is_made_of_what_the_worker_said_when_the_session_was_opened() {
    let worker = answering(r#""result":{}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    for _ in 0..2 {
        let answer = ask(&edge, "tok-alice", "server/discover", "", &request("\"d\"", "server/discover", "", "")).await;
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("d")));
        assert_eq!(
            answer.json()["result"],
            json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
                "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
                "instructions": "be kind", "ttlMs": 0, "cacheScope": "private",
                "_meta": { SERVER: { "name": "old", "version": "3" } },
            })
        );
    }
    let methods: Vec<_> = worker.arrivals(4).await.iter().map(Arrival::rpc_method).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "ping", "ping"], "and whether it is still there");
}

#[tokio::test]
async fn errors_keep_their_words_and_get_the_codes_and_statuses_of_the_modern_era() {
    for (said, told, status) in [
        ("-32002", -32602, 200),
        ("-32001", -32001, 200),
        ("-32003", -32003, 200),
        ("-32019", -32019, 200),
        ("-32020", -32603, 200),
        ("-32022", -32603, 200),
        ("-32042", -32603, 200),
        ("-32099", -32603, 200),
        ("-32100", -32100, 200),
        ("-32000", -32000, 200),
        ("-32601", -32601, 404),
        ("-32602", -32602, 200),
        ("7", 7, 200),
    ] {
        let error: &str = format!(r#""error":{{"code": {said},"message":"m","data":{{"uri":"u"}}}}"#).leak();
        let worker = answering(error).await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        let answer = called(&edge, "t").await;
        assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (status, told, &json!(1)), "{said}");
        let error = &answer.json()["error"];
        assert_eq!((&error["message"], &error["data"]), (&json!("m"), &json!({ "uri": "u" })), "{said}");
    }
}

#[tokio::test]
async fn a_method_that_sessions_do_not_have_is_refused_and_a_notification_is_taken() {
    let worker = answering(r#""result":{}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    for method in ["ping", "logging/setLevel", "resources/subscribe", "tasks/get", "no/such"] {
        let answer = ask(&edge, "tok-alice", method, "", &request("5", method, "", "")).await;
        assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (404, -32601, &json!(5)), "{method}");
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    assert_eq!(ask(&edge, "tok-alice", "notifications/x", "", note).await.status, 202);
    assert_eq!(worker.count(), 0, "nothing was sent");
}

#[tokio::test]
async fn progress_and_wanted_log_lines_pass_and_everything_else_on_the_stream_does_not() {
    let worker = streaming(&[
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1.50}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"low"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"high"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        r#"{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":999,"result":{"of":"another"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#,
    ])
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let meta = r#""progressToken":12345678901234567890123,"io.modelcontextprotocol/logLevel":"warning","#;
    let answer = ask(&edge, "tok-alice", "tools/call", "t", &call("\"a\"", "t", meta)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert!(answer.text().contains(r#"{"progressToken":12345678901234567890123,"progress":1.50}"#), "{answer:?}");
    let told = events(&answer);
    let methods: Vec<_> = told.iter().map(|event| event["method"].as_str().unwrap_or("answer")).collect();
    assert_eq!(methods, ["notifications/progress", "notifications/message", "answer"]);
    assert_eq!((&told[1]["params"]["data"], &told[2]["id"]), (&json!("high"), &json!("a")));
    // Opening (2), the call, and the two answers to what the worker asked.
    let arrivals = worker.arrivals(5).await;
    let answers: Vec<_> = arrivals.iter().map(Arrival::json).filter(|sent| sent.get("method").is_none()).collect();
    assert!(answers.iter().any(|sent| sent["id"] == "ask" && sent["error"]["code"] == -32601), "{answers:?}");
    assert!(answers.iter().any(|sent| sent["id"] == 77 && sent["result"] == json!({})), "{answers:?}");
}

#[tokio::test]
async fn a_stream_with_nothing_but_the_answer_in_it_comes_as_json() {
    let worker = streaming(&[
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"not asked for"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#,
    ])
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let answer = called(&edge, "t").await;
    assert_eq!((answer.header("content-type"), &answer.json()["id"]), (Some("application/json"), &json!(1)));
}

#[tokio::test]
async fn tenants_never_share_a_session_and_one_tenants_requests_do() {
    let worker = answering(r#""result":{}"#).await;
    let edge = bridged(&[("alice", &worker), ("bob", &worker)]).start().await;
    for token in ["tok-alice", "tok-bob", "tok-alice", "tok-bob"] {
        assert_eq!(ask(&edge, token, "tools/call", "t", &call("1", "t", "")).await.status, 200);
    }
    let calls = of(&worker, "tools/call").await;
    let sessions: Vec<_> = calls.iter().map(|arrival| arrival.header("mcp-session-id").unwrap()).collect();
    assert_eq!(sessions, ["S1", "S2", "S1", "S2"]);
}

#[tokio::test]
async fn a_hundred_requests_of_the_same_id_at_once_get_each_its_own_answer_from_one_session() {
    let barrier = Arc::new(tokio::sync::Barrier::new(100));
    let worker = worker(move |arrival, mut talk| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            let (id, name) = (&arrival.json()["id"], &arrival.json()["params"]["name"]);
            talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"of":{name}}}}}"#)).await;
            Next::Keep(talk)
        }
    })
    .await;
    let edge = bridged(&[("alice", &worker)])
        .with(|config| (config.exchanges.most, config.exchanges.most_per_tenant) = (800, 200))
        .start()
        .await;
    let edge = Arc::new(edge);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..100 {
        let edge = Arc::clone(&edge);
        calls.spawn(async move {
            let name = format!("t{number}");
            let answer = called(&edge, &name).await.json();
            assert_eq!((&answer["id"], &answer["result"]["of"]), (&json!(1), &json!(name)));
        });
    }
    assert_eq!(within(calls.join_all()).await.len(), 100);
    assert_eq!(of(&worker, "initialize").await.len(), 1);
    let mut ids: Vec<_> = of(&worker, "tools/call").await.iter().map(|call| call.json()["id"].as_u64()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

#[tokio::test]
async fn a_client_that_leaves_is_a_cancellation_that_the_worker_hears_of() {
    let worker = worker(|_, mut talk| async move {
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let mut client = edge.client().await;
    client.post(&headers("tools/call", "t"), &call("1", "t", "")).await;
    let sent = of(&worker, "tools/call").await;
    drop(client);
    let cancelled = of(&worker, "notifications/cancelled").await;
    assert_eq!(cancelled[0].json()["params"]["requestId"], sent[0].json()["id"]);
    assert_eq!(cancelled[0].header("mcp-session-id"), Some("S1"));
}

#[tokio::test]
async fn a_call_into_a_session_that_the_worker_has_forgotten_is_not_repeated_and_the_next_one_works() {
    const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    const TEXT: &str =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    let none: &str = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{TEXT}",
        TEXT.len()
    )
    .leak();
    for (refusal, lives) in [(GONE, true), (none, true), (GONE, false)] {
        let worker = worker(move |arrival, mut talk| async move {
            if lives && arrival.header("mcp-session-id") == Some("S2") {
                talk.reply(&arrival).await;
            } else {
                talk.send(refusal).await;
            }
            Next::Keep(talk)
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        let answer = called(&edge, "t").await;
        assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (502, Some(-31502)), "{answer:?}");
        assert!(answer.text().contains("not repeated"), "{answer:?}");
        assert_eq!(called(&edge, "t").await.status, if lives { 200 } else { 502 }, "in a session of its own");
        let calls = of(&worker, "tools/call").await;
        let sessions: Vec<_> = calls.iter().map(|arrival| arrival.header("mcp-session-id").unwrap()).collect();
        assert_eq!(sessions, ["S1", "S2"]);
    }
}

#[tokio::test]
async fn a_question_without_effect_is_asked_once_more_in_a_fresh_session_and_no_oftener() {
    for lives in [true, false] {
        let worker = worker(move |arrival, mut talk| async move {
            if lives && arrival.header("mcp-session-id") == Some("S2") {
                talk.reply(&arrival).await;
            } else {
                talk.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
            }
            Next::Keep(talk)
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        let answer = ask(&edge, "tok-alice", "tools/list", "", &request("1", "tools/list", "", "")).await;
        assert_eq!(answer.status, if lives { 200 } else { 502 }, "{answer:?}");
        let lists = of(&worker, "tools/list").await;
        let sessions: Vec<_> = lists.iter().map(|arrival| arrival.header("mcp-session-id").unwrap()).collect();
        assert_eq!(sessions, ["S1", "S2"]);
    }
}

#[tokio::test]
async fn a_worker_that_dies_within_a_call_leaves_the_outcome_unknown_and_is_not_asked_again() {
    for half in ["", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"] {
        let worker = worker(move |_, mut talk| async move {
            talk.send(half).await;
            Next::Close(talk)
        })
        .await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        let answer = called(&edge, "t").await;
        assert_eq!((answer.status, answer.code()), (502, -31502));
        assert!(answer.message().contains("Outcome unknown") && answer.message().contains("not repeated"));
        assert_eq!(of(&worker, "tools/call").await.len(), 1);
    }
}

#[tokio::test]
async fn a_worker_without_session_ids_is_served_too_and_a_client_that_leaves_ends_the_exchange() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "tools/call" && arrival.json()["params"]["name"] == "slow" {
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    assert_eq!(called(&edge, "t").await.json()["result"]["of"], "tools/call");
    assert!(worker.arrivals(3).await.iter().all(|arrival| arrival.header("mcp-session-id").is_none()));
    let mut client = edge.client().await;
    client.post(&headers("tools/call", "slow"), &call("1", "slow", "")).await;
    worker.arrivals(4).await;
    drop(client);
    worker.closed(1).await;
}

#[tokio::test]
async fn the_worker_hears_of_a_sessions_end_when_it_rests_too_long_and_when_the_edge_stops() {
    let worker = answering(r#""result":{}"#).await;
    let mut edge = bridged(&[("alice", &worker)]).start().await;
    called(&edge, "t").await;
    edge.tell_to_stop();
    assert_eq!(edge.drained().await.cut, 0);
    assert_eq!(of(&worker, "DELETE").await[0].header("mcp-session-id"), Some("S1"));

    let worker = answering(r#""result":{}"#).await;
    let edge =
        bridged(&[("alice", &worker)]).with(|config| config.bridges.idle = Duration::from_millis(1)).start().await;
    called(&edge, "t").await;
    assert_eq!(of(&worker, "DELETE").await[0].header("mcp-session-id"), Some("S1"));
    called(&edge, "t").await;
    assert_eq!(of(&worker, "tools/call").await[1].header("mcp-session-id"), Some("S2"));
}

#[tokio::test]
async fn a_reload_that_drops_the_worker_ends_its_sessions() {
    let (worker, other) = (answering(r#""result":{}"#).await, answering(r#""result":{}"#).await);
    let edge = bridged(&[("alice", &worker)]).start().await;
    called(&edge, "t").await;
    edge.take_up(bridged(&[("alice", &worker), ("bob", &other)])).await;
    called(&edge, "t").await;
    assert_eq!(of(&worker, "initialize").await.len(), 1, "what stays goes on");
    edge.take_up(bridged(&[("alice", &other)])).await;
    assert_eq!(of(&worker, "DELETE").await[0].header("mcp-session-id"), Some("S1"));
    called(&edge, "t").await;
    assert_eq!(of(&other, "initialize").await.len(), 1);
}

#[tokio::test]
async fn beyond_the_most_sessions_the_longest_resting_one_is_ended() {
    for (most, ended) in [(2, false), (1, true)] {
        let worker = answering(r#""result":{}"#).await;
        let edge =
            bridged(&[("alice", &worker), ("bob", &worker)]).with(|config| config.bridges.most = most).start().await;
        for token in ["tok-alice", "tok-bob", "tok-alice"] {
            assert_eq!(ask(&edge, token, "tools/call", "t", &call("1", "t", "")).await.status, 200);
        }
        assert_eq!(of(&worker, "initialize").await.len(), if ended { 3 } else { 2 });
    }
}

#[tokio::test]
async fn an_answer_as_long_as_is_allowed_passes_and_a_longer_one_does_not() {
    const TEXT: &str = r#"{"jsonrpc":"2.0", "id": 2, "result":{}}"#;
    for (spare, status) in [(0, 200), (1, 502)] {
        let worker = answering(r#""result":{}"#).await;
        let most = (TEXT.len() - spare) as u64;
        let edge = bridged(&[("alice", &worker)]).bounds(|bounds| bounds.most_reply_bytes = most).start().await;
        assert_eq!(called(&edge, "t").await.status, status);
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_the_worker_is_told() {
    let worker = worker(|_, mut talk| async move {
        talk.events().await;
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).bounds(|bounds| bounds.total = Duration::from_millis(50)).start().await;
    let answer = called(&edge, "t").await;
    assert_eq!((answer.status, answer.code()), (504, -31504));
    assert_eq!(of(&worker, "notifications/cancelled").await[0].json()["params"]["requestId"], 2);
}

#[tokio::test]
async fn a_worker_that_opens_no_session_has_been_sent_nothing_else() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n").await;
        Next::Keep(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let answer = called(&edge, "t").await;
    assert_eq!((answer.status, answer.code()), (503, -31503));
    assert!(answer.message().contains("was not sent"), "{answer:?}");
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let worker = worker(|_, mut talk| async move {
        talk.events().await;
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge =
        bridged(&[("alice", &worker)]).with(|config| config.answers.comment = Duration::from_millis(5)).start().await;
    let mut client = edge.client().await;
    client.post(&headers("tools/call", "t"), &call("1", "t", "")).await;
    let head = client.head().await;
    assert_eq!(header(&head, "content-type"), Some("text/event-stream"));
    for _ in 0..2 {
        assert_eq!(client.chunk().await.as_deref(), Some(&b": keep-alive\n\n"[..]));
    }
}

#[tokio::test]
async fn a_refusal_that_names_its_request_is_never_taken_for_a_lost_session() {
    let worker = worker(|arrival, mut talk| async move {
        let id = &arrival.json()["id"];
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no browser session"}}}}"#);
        let length = text.len();
        talk.send(format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{text}"
        ))
        .await;
        Next::Keep(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let answer = called(&edge, "t").await;
    assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (400, -32000, &json!(1)));
    assert_eq!(of(&worker, "tools/call").await.len(), 1);
}

#[tokio::test]
async fn requests_that_come_at_once_and_first_open_one_session() {
    let barrier = Arc::new(tokio::sync::Barrier::new(8));
    let worker = worker(move |arrival, mut talk| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            talk.reply(&arrival).await;
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Arc::new(bridged(&[("alice", &worker)]).start().await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let edge = Arc::clone(&edge);
        calls.spawn(async move { called(&edge, "t").await.status });
    }
    assert_eq!(within(calls.join_all()).await, [200; 8]);
    assert_eq!(of(&worker, "initialize").await.len(), 1);
}

#[tokio::test]
async fn an_opening_that_stalls_is_given_up_once_for_all_who_wait_and_holds_up_no_other_tenant() {
    let opened = Arc::new(AtomicUsize::new(0));
    let worker = Worker::scripted(move |arrival, mut talk| {
        let opened = Arc::clone(&opened);
        async move {
            if arrival.rpc_method() == "initialize" && opened.fetch_add(1, Ordering::SeqCst) == 0 {
                talk.abandoned().await;
                return Next::Close(talk);
            }
            talk.reply(&arrival).await;
            Next::Keep(talk)
        }
    })
    .await;
    let edge = bridged(&[("alice", &worker), ("bob", &worker)])
        .bounds(|bounds| bounds.head = Duration::from_millis(300))
        .start()
        .await;
    let edge = Arc::new(edge);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let edge = Arc::clone(&edge);
        waiting.spawn(async move { called(&edge, "t").await });
    }
    worker.arrivals(1).await;
    assert_eq!(ask(&edge, "tok-bob", "tools/call", "t", &call("1", "t", "")).await.status, 200);
    for refused in within(waiting.join_all()).await {
        assert_eq!((refused.status, refused.code()), (503, -31503));
        assert!(refused.message().contains("was not sent"), "{refused:?}");
    }
    // One stalled, and bob's.
    assert_eq!(of(&worker, "initialize").await.len(), 2, "those who waited do not each try in turn");
    assert_eq!(called(&edge, "t").await.status, 200, "the next one tries again");
}

#[tokio::test]
async fn an_answer_under_another_id_is_none_and_the_outcome_is_unknown() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"2","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        for events in [false, true] {
            let worker = worker(move |_, mut talk| async move {
                if events {
                    talk.events().await;
                    talk.chunk(format!("data: {answer}\n\n")).await;
                    talk.last_chunk().await;
                } else {
                    talk.json("", answer).await;
                }
                Next::Keep(talk)
            })
            .await;
            let edge = bridged(&[("alice", &worker)]).start().await;
            let told = called(&edge, "t").await;
            assert_eq!((told.status, told.code(), &told.json()["id"]), (502, -31502, &json!(1)), "{answer}");
            assert!(told.message().contains("not repeated"), "{told:?}");
            assert_eq!(of(&worker, "tools/call").await.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_list_in_pages_keeps_its_cursors() {
    let worker = answering(r#""result":{"tools":[],"nextCursor":"a/+=\u00e9 2"}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let body = request("1", "tools/list", r#""cursor":"a/+=\u00e9 1","#, "");
    let answer = ask(&edge, "tok-alice", "tools/list", "", &body).await;
    assert!(answer.text().contains(r#""nextCursor":"a/+=\u00e9 2""#), "{answer:?}");
    let sent = of(&worker, "tools/list").await;
    assert!(String::from_utf8_lossy(&sent[0].body).contains(r#""cursor":"a/+=\u00e9 1""#), "{sent:?}");
}

#[tokio::test]
async fn a_list_of_tools_asks_for_no_header_that_nobody_would_check_and_one_that_comes_is_no_fault() {
    let worker = answering(
        r#""result":{"tools":[{"name":"t","inputSchema":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}]}"#,
    )
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let answer = ask(&edge, "tok-alice", "tools/list", "", &request("1", "tools/list", "", "")).await;
    assert_eq!(
        answer.json()["result"]["tools"],
        json!([{ "name": "t", "inputSchema": { "properties": { "n": { "type": "integer" } } } }])
    );
    let others = ask(&edge, "tok-alice", "prompts/list", "", &request("1", "prompts/list", "", "")).await;
    assert!(others.text().contains("x-mcp-header"), "only there: {others:?}");
    // With the header of another value than the body's.
    assert_eq!(called(&edge, "t").await.status, 200);
}

#[tokio::test]
async fn discovery_finds_out_that_the_worker_is_another_by_now_or_gone() {
    const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let worker = worker(|arrival, mut talk| async move {
        if arrival.header("mcp-session-id") == Some("S1") {
            talk.send(GONE).await;
        } else {
            talk.reply(&arrival).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let discover =
        || async { ask(&edge, "tok-alice", "server/discover", "", &request("\"d\"", "server/discover", "", "")).await };
    assert_eq!(discover().await.status, 200);
    assert_eq!(of(&worker, "initialize").await.len(), 2);
    drop(worker);
    let gone = discover().await;
    assert_eq!((gone.status, &gone.json()["id"]), (503, &json!("d")), "{gone:?}");
}

#[tokio::test]
async fn a_name_that_a_header_cannot_carry_is_compared_with_the_bodys_and_reaches_the_worker_there() {
    let worker = answering(r#""result":{}"#).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let sentinel = "=?base64?Z3LDvMOfZQ==?=";
    assert_eq!(ask(&edge, "tok-alice", "tools/call", sentinel, &call("1", "grüße", "")).await.status, 200);
    assert_eq!(of(&worker, "tools/call").await[0].json()["params"]["name"], "grüße");
    let wrong = ask(&edge, "tok-alice", "tools/call", sentinel, &call("1", "grüse", "")).await;
    assert_eq!((wrong.status, wrong.code()), (400, -32020));
    assert_eq!(of(&worker, "tools/call").await.len(), 1);
}
