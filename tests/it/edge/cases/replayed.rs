//! A stream that is opened again from an event, by its owner and by others.

use crate::edge::setting::{MODERN, MODERN_LIST, Setting};
use crate::edge::talk::{ABSENT, status};
use crate::edge::worker::{Next, Worker};

/// A worker whose streams carry their session's own events, from the one after the named one.
async fn resuming() -> Worker {
    let opened = std::sync::atomic::AtomicUsize::new(0);
    Worker::scripted(move |arrival, mut talk| {
        let next = opened.load(std::sync::atomic::Ordering::Relaxed);
        if arrival.rpc_method() == "initialize" {
            opened.store(next + 1, std::sync::atomic::Ordering::Relaxed);
        }
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.json(&format!("Mcp-Session-Id: session-{next}\r\n"), &arrival.result()).await;
            } else if arrival.method == "GET" {
                let session = arrival.header("mcp-session-id").unwrap_or_default();
                talk.events().await;
                talk.chunk(format!("id: {session}/2\ndata: {{\"of\":\"{session}\"}}\n\n")).await;
                talk.last_chunk().await;
            } else {
                talk.reply(&arrival).await;
            }
            Next::Keep(talk)
        }
    })
    .await
}

#[tokio::test]
async fn an_event_id_of_anothers_stream_leads_to_ones_own_stream_and_nothing_else() {
    // One worker for both, so that only the edge keeps them apart.
    let worker = resuming().await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)]).start().await;
    let (alices, bobs) = (edge.session().await, edge.session_of("tok-bob").await);
    let open = async |token: &str, session: &str, last: &str| {
        let bearer = format!("Bearer {token}");
        let mut client = edge.client().await;
        let headers = [("Authorization", &*bearer), ("Mcp-Session-Id", session), ("Last-Event-ID", last)];
        client.request("GET", "/mcp", &headers, None).await;
        client.answer().await
    };
    let own = open("tok-alice", &alices, "session-0/1").await;
    assert_eq!((own.status, own.text()), (200, "id: session-0/2\ndata: {\"of\":\"session-0\"}\n\n"));
    let long = "9".repeat(10_000);
    let tried = ["session-0/1", "session-0/2", "0", "-1", &long, ABSENT];
    for last in tried {
        let answer = open("tok-bob", &bobs, last).await;
        assert_eq!(
            (answer.status, answer.text()),
            (200, "id: session-1/2\ndata: {\"of\":\"session-1\"}\n\n"),
            "{last}"
        );
    }
    for (arrival, last) in worker.arrivals(3 + tried.len()).await.iter().skip(3).zip(tried) {
        assert_eq!(arrival.header("mcp-session-id"), Some("session-1"), "it goes along with bob's session alone");
        assert_eq!(arrival.header("last-event-id"), (last != ABSENT).then_some(last));
    }
    let before = worker.count();
    for last in ["a\0b", "session-0/1\r\nLast-Event-ID: 0"] {
        assert_eq!(open("tok-bob", &bobs, last).await.status, 400, "{last:?}");
    }
    let foreign = open("tok-bob", &alices, "session-0/1").await;
    assert_eq!((foreign.status, foreign.json()["id"].is_null()), (403, true));
    assert_eq!(worker.count(), before);
}

#[tokio::test]
async fn where_there_is_no_stream_an_event_id_changes_nothing() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    for headers in [&[("Mcp-Session-Id", session.as_str())][..], MODERN] {
        let mut client = edge.client().await;
        client.request("GET", "/mcp", &[headers, &[("Last-Event-ID", "0")]].concat(), None).await;
        assert_eq!(status(&client.head().await), 405);
    }
    assert_eq!(worker.count(), 1);
    let resumed = [MODERN, &[("Last-Event-ID", "0")]].concat();
    assert_eq!(edge.ask(&resumed, MODERN_LIST).await.status, 200);
    assert_eq!(worker.arrivals(2).await[1].header("last-event-id"), None, "the era has no such thing");
}
