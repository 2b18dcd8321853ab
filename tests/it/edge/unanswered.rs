//! Event streams that end without the answer to their call, or that say more than it.

use super::setting::{Edge, MODERN, MODERN_LIST, Setting, within};
use super::talk::Told;
use super::worker::{Next, Worker};
use crate::exposition::Exposition;

const NOTE: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
const ANSWER: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
const OTHER: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}}\n\n";

/// A worker that says this on the stream of a call, and then ends it.
async fn saying(pieces: &'static [&'static str]) -> (Worker, Edge) {
    let worker = Worker::scripted(move |_, mut talk| async move {
        talk.events().await;
        for piece in pieces {
            talk.chunk(piece).await;
        }
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    (worker, edge)
}

async fn asked(edge: &Edge) -> Told {
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    client.told().await
}

/// Waits until one exchange is counted as this, and so many as of unknown outcome.
async fn is_counted(edge: &Edge, worker: &Worker, outcome: &str, unknown: f64) {
    let address = worker.address.to_string();
    within(async {
        loop {
            let seen = Exposition::read(&edge.meters.exposition());
            let requests = [("method", "tools/list"), ("outcome", outcome)];
            let doubtful = [("worker", &*address), ("tenant", "alice")];
            if seen.get("playground_requests_total", &requests) == Some(1.0)
                && seen.get("playground_worker_unknown_outcome_total", &doubtful).unwrap_or_default() == unknown
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn text(told: &Told) -> &str {
    std::str::from_utf8(&told.body).unwrap()
}

#[tokio::test]
async fn a_stream_that_ends_with_half_an_event_has_no_end() {
    for pieces in [&[NOTE, "data: {\"jsonrpc\""][..], &["event: message\ndata: {\"id\":7,\"result\":{}}\n"], &["data"]]
    {
        let (worker, edge) = saying(pieces).await;
        let told = asked(&edge).await;
        assert!(!told.whole, "{pieces:?}: {}", text(&told));
        assert_eq!(text(&told), pieces.concat());
        is_counted(&edge, &worker, "upstream", 1.0).await;
    }
}

#[tokio::test]
async fn a_stream_whose_only_answer_is_to_another_call_ends_with_what_is_known_of_this_one() {
    for pieces in [&[OTHER][..], &[NOTE, OTHER], &[NOTE], &[]] {
        let (worker, edge) = saying(pieces).await;
        let told = asked(&edge).await;
        assert!(told.whole, "{pieces:?}");
        let last = text(&told).strip_prefix(&pieces.concat()).unwrap();
        let error = last.strip_prefix("event: message\ndata: ").unwrap();
        let error: serde_json::Value = serde_json::from_str(error).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &(-31502).into()));
        assert!(error["error"]["message"].as_str().unwrap().contains("Outcome unknown"), "{error}");
        is_counted(&edge, &worker, "upstream", 1.0).await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_first_answer_to_its_call() {
    let more = [NOTE, OTHER, ANSWER, NOTE, ANSWER].concat();
    let at_once: &'static [&'static str] = Box::leak(Box::new([&*Box::leak(more.into_boxed_str())]));
    for pieces in [&[NOTE, OTHER, ANSWER, ANSWER][..], &[NOTE, OTHER, ANSWER, "data: hal"], at_once] {
        let (worker, edge) = saying(pieces).await;
        for count in 1..=2 {
            let told = asked(&edge).await;
            assert!(told.whole, "{pieces:?}");
            assert_eq!(text(&told), [NOTE, OTHER, ANSWER].concat(), "{pieces:?}");
            assert_eq!(worker.count(), count);
            if count == 1 {
                is_counted(&edge, &worker, "ok", 0.0).await;
            }
        }
        // The rest was read too, so that the connection could be used again.
        worker.open(1).await;
    }
}

#[tokio::test]
async fn a_worker_that_does_not_end_behind_its_answer_is_left() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        talk.chunk(ANSWER).await;
        while talk.try_chunk(NOTE.as_bytes()).await {
            tokio::task::yield_now().await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let told = asked(&edge).await;
    assert!(told.whole);
    assert_eq!(text(&told), ANSWER);
    is_counted(&edge, &worker, "ok", 0.0).await;
    within(worker.open(0)).await;
}
