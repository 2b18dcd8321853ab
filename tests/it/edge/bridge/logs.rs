//! A client that asks for a worker's log within a request, before a worker that is asked for it by a request of its own.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::super::setting::Edge;
use super::super::worker::{Next, Talk, Worker};
use super::{Answer, ask, bridged, call, events, headers, of};

const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

/// A worker with a log, in sessions S, unless `id` is empty; a call of `slow` is answered when it is told.
async fn logging(id: &'static str, set_level: &'static str, goes_on: Arc<Notify>) -> Worker {
    Worker::scripted(move |arrival, mut talk: Talk| {
        let goes_on = Arc::clone(&goes_on);
        async move {
            let number = arrival.json()["id"].to_string();
            match arrival.rpc_method().as_str() {
                "initialize" => {
                    let told = json!({ "jsonrpc": "2.0", "id": 1, "result": {
                        "protocolVersion": "2025-11-25", "capabilities": { "logging": {}, "tools": {} },
                        "serverInfo": { "name": "w", "version": "1" },
                    }});
                    talk.json(id, &told.to_string()).await;
                }
                "logging/setLevel" if set_level.starts_with("HTTP") => talk.send(set_level).await,
                "logging/setLevel" => {
                    talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":{number},{set_level}}}"#)).await;
                }
                "tools/call" => {
                    talk.events().await;
                    if arrival.json()["params"]["name"] == "slow" {
                        goes_on.notified().await;
                    }
                    for level in ["debug", "info", "warning", "error"] {
                        let params = json!({ "level": level, "data": "x" });
                        let line = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
                        talk.chunk(format!("data: {line}\n\n")).await;
                    }
                    talk.chunk(format!("data: {}\n\n", arrival.result())).await;
                    talk.last_chunk().await;
                }
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        }
    })
    .await
}

fn wanting(name: &str, level: &str) -> String {
    let meta = format!(r#""io.modelcontextprotocol/logLevel":"{level}","#);
    call("1", name, if level.is_empty() { "" } else { &meta })
}

/// The levels of the lines that the client of such a call gets.
async fn logged(edge: &Edge, level: &str) -> Vec<String> {
    let answer: Answer = ask(edge, "tok-alice", "tools/call", "t", &wanting("t", level)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let lines = events(&answer).into_iter().filter(|event| event["method"] == "notifications/message");
    lines.map(|line| line["params"]["level"].as_str().unwrap().to_owned()).collect()
}

/// What has come to the worker since its session was opened: the method, or the level that it was asked for.
fn asked(worker: &Worker) -> Vec<String> {
    let sent = worker.arrived().into_iter().filter(|arrival| arrival.method == "POST").skip(2);
    sent.map(|arrival| arrival.json()["params"]["level"].as_str().map_or(arrival.rpc_method(), str::to_owned)).collect()
}

#[tokio::test]
async fn a_log_that_is_asked_for_is_asked_of_the_worker_before_the_call_and_once_for_each_change() {
    let worker = logging("Mcp-Session-Id: S\r\n", r#""result":{}"#, Arc::default()).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    assert_eq!(logged(&edge, "").await, Vec::<String>::new());
    assert_eq!(logged(&edge, "no level").await, Vec::<String>::new());
    assert_eq!(asked(&worker), ["tools/call", "tools/call"], "nobody has asked for it");
    for (level, lines) in [("warning", 2), ("warning", 2), ("debug", 4), ("", 0), ("error", 1)] {
        assert_eq!(logged(&edge, level).await.len(), lines, "{level}");
    }
    let call = "tools/call";
    assert_eq!(asked(&worker)[2..], ["warning", call, call, "debug", call, call, "error", call]);
    assert_eq!(of(&worker, "logging/setLevel").await[0].header("mcp-session-id"), Some("S"));
}

#[tokio::test]
async fn while_calls_run_at_once_the_worker_logs_for_the_one_that_wants_most_and_each_client_sees_its_own() {
    let goes_on = Arc::new(Notify::new());
    let worker = logging("Mcp-Session-Id: S\r\n", r#""result":{}"#, Arc::clone(&goes_on)).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let mut slow = edge.client().await;
    slow.post(&headers("tools/call", "slow"), &wanting("slow", "info")).await;
    of(&worker, "tools/call").await;
    assert_eq!(logged(&edge, "error").await, ["error"]);
    assert_eq!(asked(&worker), ["info", "tools/call", "tools/call"], "the other still runs");
    goes_on.notify_one();
    assert_eq!(events(&slow.answer().await).len(), 4, "three lines and the answer");
}

#[tokio::test]
async fn a_worker_that_cannot_be_asked_answers_the_call_all_the_same_and_is_not_asked_again() {
    for refusal in [r#""error":{"code":-32603,"message":"no"}"#, "HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n"] {
        let worker = logging("Mcp-Session-Id: S\r\n", refusal, Arc::default()).await;
        let edge = bridged(&[("alice", &worker)]).start().await;
        for _ in 0..2 {
            assert_eq!(logged(&edge, "error").await, ["error"]);
        }
        assert_eq!(asked(&worker), ["error", "tools/call", "tools/call"]);
    }
    // Its level would be everyone's.
    let worker = logging("", r#""result":{}"#, Arc::default()).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    assert_eq!(logged(&edge, "error").await, ["error"]);
    assert_eq!(asked(&worker), ["tools/call"]);
}

#[tokio::test]
async fn a_session_that_is_found_forgotten_when_the_level_is_set_is_opened_once_more() {
    let worker = logging("Mcp-Session-Id: S\r\n", GONE, Arc::default()).await;
    let edge = bridged(&[("alice", &worker)]).start().await;
    let answer = ask(&edge, "tok-alice", "tools/call", "t", &wanting("t", "error")).await;
    assert_eq!(answer.status, 502, "it forgets each: {answer:?}");
    assert_eq!((of(&worker, "initialize").await.len(), of(&worker, "logging/setLevel").await.len()), (2, 2));
    assert!(worker.arrived().iter().all(|arrival| arrival.rpc_method() != "tools/call"), "it was not sent");
}
