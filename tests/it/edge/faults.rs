//! Whatever a worker does, its client is told what is known, and the next call is served.

use std::time::Duration;

use super::setting::{LIST, MODERN, MODERN_LIST, Setting, within};
use super::talk::status;
use super::worker::{Next, Worker};

/// What a worker sends, whether it then closes or stalls, and what its client gets: a status and a text.
type Cell = (&'static str, &'static str, Then, u16, &'static str);

#[derive(Clone, Copy, Debug)]
enum Then {
    Closes,
    Stalls,
}

const UNKNOWN: &str = "Outcome unknown";
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

const CELLS: [Cell; 15] = [
    ("closes before the head", "", Then::Closes, 502, UNKNOWN),
    ("stalls before the head", "", Then::Stalls, 504, UNKNOWN),
    ("closes within the head", "HTTP/1.1 200 OK\r\nConte", Then::Closes, 502, UNKNOWN),
    ("stalls within the head", "HTTP/1.1 200 OK\r\nConte", Then::Stalls, 504, UNKNOWN),
    ("sends garbage", "\0\u{1}\u{2}garbage\r\n\r\n", Then::Stalls, 502, UNKNOWN),
    (
        "redirects",
        "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        Then::Stalls,
        502,
        "no effect",
    ),
    (
        "promises more than it sends",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
        Then::Closes,
        200,
        "{}",
    ),
    (
        "stalls within a body",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
        Then::Stalls,
        200,
        "{}",
    ),
    (
        "sends more than it promised",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}{}",
        Then::Stalls,
        200,
        "{}",
    ),
    ("closes behind a whole answer", JSON, Then::Closes, 200, "{}"),
    (
        "closes between events",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\na\r\ndata: {}\n\n\r\n",
        Then::Closes,
        200,
        UNKNOWN,
    ),
    (
        "stalls between events",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\na\r\ndata: {}\n\n\r\n",
        Then::Stalls,
        200,
        UNKNOWN,
    ),
    (
        "closes within an event",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: {}\r\n",
        Then::Closes,
        200,
        "data: {}",
    ),
    (
        "stalls within an event",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: {}\r\n",
        Then::Stalls,
        200,
        "data: {}",
    ),
    (
        "breaks the chunks of a stream",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        Then::Stalls,
        200,
        UNKNOWN,
    ),
];

#[tokio::test]
async fn whatever_a_worker_does_to_a_call_the_client_is_told_and_the_next_call_is_served() {
    for (name, sent, then, expected, text) in CELLS {
        let worker = Worker::scripted(move |arrival, mut talk| async move {
            if arrival.rpc_method() != "tools/list" || arrival.json()["id"] != 7 {
                talk.reply(&arrival).await;
                return Next::Keep(talk);
            }
            talk.send(sent).await;
            if matches!(then, Then::Stalls) {
                talk.abandoned().await;
            }
            Next::Close(talk)
        })
        .await;
        let edge = Setting::sandbox(&worker)
            .with(|config| config.exchanges.most = 1)
            .bounds(|bounds| (bounds.head, bounds.idle) = (Duration::from_millis(200), Duration::from_millis(200)))
            .start()
            .await;
        let session = edge.session().await;
        let legacy = [("Mcp-Session-Id", session.as_str())];
        for (era, headers, body) in [("modern", MODERN, MODERN_LIST), ("legacy", &legacy, LIST)] {
            let before = worker.count();
            let mut client = edge.client().await;
            client.post(headers, body).await;
            let answer = String::from_utf8(client.rest_or_end().await).unwrap();
            assert_eq!(status(&answer), expected, "a worker that {name}, {era}: {answer}");
            assert!(answer.contains(text), "a worker that {name}, {era}: {answer}");
            // The only slot, and the session: both are as they were.
            let next = LIST.replace("\"id\":7", "\"id\":8");
            let served = async { while edge.ask(&legacy, &next).await.status != 200 {} };
            within(served).await;
            let asked = worker.arrivals(0).await.iter().skip(before).filter(|call| call.json()["id"] == 7).count();
            assert_eq!(asked, 1, "a worker that {name}, {era}");
        }
    }
}

#[tokio::test]
async fn of_ten_thousand_calls_to_a_worker_that_closes_soon_after_each_answer_none_arrives_twice() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        talk.reply(&arrival).await;
        let id = arrival.json()["id"].as_u64().unwrap();
        tokio::time::sleep(Duration::from_millis(id % 6)).await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker)
        .with(|config| (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000))
        .start()
        .await;
    let mut client = edge.client().await;
    let mut lost = 0;
    for id in 0..CALLS {
        client.post(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
        let answer = client.answer().await;
        match answer.status {
            200 => assert_eq!(answer.json()["id"], id),
            502 => lost += 1,
            other => panic!("{other}"),
        }
    }
    assert!(lost <= 1, "only the first race may be lost, and {lost} were");
    let mut arrived: Vec<_> =
        worker.arrivals(CALLS - lost).await.iter().map(|call| call.json()["id"].as_u64().unwrap()).collect();
    let all = arrived.len();
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), all, "a call has arrived twice");
}

const CALLS: usize = 10_000;
