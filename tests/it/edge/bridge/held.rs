//! Answers over the bridge are held whole, and count as request bodies do.

use std::sync::Arc;

use tokio::sync::Notify;

use super::super::setting::{Edge, Setting, within};
use super::super::talk::Answer;
use super::super::worker::{Next, Worker};
use super::{ask, bridged, call, worker};

/// The answer's text at the client's is longer than at the worker's by so much.
const ADDED: usize =
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"old","version":"3"}},"resultType":"complete","#.len();

/// Answers a call with so many bytes as its tool's name says, as the client sees them, in one text or as an event.
async fn sized(events: bool) -> Worker {
    worker(move |arrival, mut talk| async move {
        let (id, name) = (&arrival.json()["id"], arrival.json()["params"]["name"].clone());
        let rest = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":""}}}}"#);
        let length: usize = name.as_str().unwrap().parse().unwrap();
        let text = rest.replace(r#""x":"""#, &format!(r#""x":"{}""#, "x".repeat(length - rest.len() - ADDED)));
        if events {
            talk.events().await;
            talk.chunk(format!("data: {text}\n\n")).await;
            talk.last_chunk().await;
        } else {
            talk.json("", &text).await;
        }
        Next::Keep(talk)
    })
    .await
}

fn budget(workers: &[(&'static str, &Worker)], all: usize, whole_body: usize) -> Setting {
    bridged(workers).with(|config| {
        (config.exchanges.most_body_bytes, config.requests.most_body_bytes) = (all, whole_body);
    })
}

async fn of_size(edge: &Edge, token: &str, size: usize) -> Answer {
    let name = size.to_string();
    ask(edge, token, "tools/call", &name, &call("1", &name, "")).await
}

fn is_refused(answer: &Answer, why: &str) {
    assert_eq!((answer.status, answer.code()), (502, -31502), "{answer:?}");
    for said in [why, "probably taken effect", "not repeated"] {
        assert!(answer.message().contains(said), "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_may_take_what_its_tenant_has_left_and_not_one_byte_more() {
    for events in [false, true] {
        let worker = sized(events).await;
        let edge = budget(&[("alice", &worker)], 40_000, 1_000).start().await;
        for _ in 0..2 {
            let whole = of_size(&edge, "tok-alice", 10_000).await;
            assert_eq!((whole.status, whole.text().len()), (200, 10_000));
            is_refused(&of_size(&edge, "tok-alice", 10_001).await, "more than 10000 bytes");
        }
    }
}

#[tokio::test]
async fn what_one_tenants_answers_hold_is_gone_for_the_others_until_they_are_told_or_nobody_waits_for_them() {
    for leaves in [false, true] {
        let goes_on = Arc::new(Notify::new());
        let notified = Arc::clone(&goes_on);
        let slow = worker(move |arrival, mut talk| {
            let goes_on = Arc::clone(&notified);
            async move {
                let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}}{}}}"#, " ".repeat(5_000));
                let text = text.replace(r#""id":1"#, &format!(r#""id":{}"#, arrival.json()["id"]));
                let length = text.len();
                talk.send(format!(
                    "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
                ))
                .await;
                talk.send(&text[..length - 1]).await;
                if leaves {
                    talk.abandoned().await;
                } else {
                    goes_on.notified().await;
                }
                talk.send(&text[length - 1..]).await;
                Next::Close(talk)
            }
        })
        .await;
        let quick = sized(false).await;
        let edge = budget(&[("alice", &slow), ("bob", &quick)], 10_000, 8_000).start().await;
        assert_eq!(of_size(&edge, "tok-bob", 6_000).await.status, 200);
        let mut client = edge.client().await;
        client.post(&super::headers("tools/call", "t"), &call("1", "t", "")).await;
        let refused = within(async {
            loop {
                let answer = of_size(&edge, "tok-bob", 6_000).await;
                if answer.status != 200 {
                    break answer;
                }
            }
        })
        .await;
        is_refused(&refused, "the server is at its limit");
        assert_eq!(of_size(&edge, "tok-bob", 4_000).await.status, 200, "there is room for so much");
        if leaves {
            drop(client);
        } else {
            goes_on.notify_one();
            assert_eq!(client.answer().await.status, 200);
        }
        within(async { while of_size(&edge, "tok-bob", 6_000).await.status != 200 {} }).await;
    }
}
