//! The bounds of one call: its whole time, the bytes of its answer, and how many streams a tenant has.

use std::time::Duration;

use super::setting::{Edge, LIST, MODERN, MODERN_LIST, Setting, within};
use super::talk::status;
use super::worker::{Next, Worker};

const SHORT: Duration = Duration::from_millis(300);

/// An edge whose calls have little time, before a worker that begins as told and then is never silent for long.
async fn begun(begin: &'static str, piece: &'static str) -> (Edge, Worker) {
    let worker = Worker::scripted(move |arrival, mut talk| async move {
        if arrival.rpc_method() == "initialize" {
            talk.reply(&arrival).await;
            return Next::Keep(talk);
        }
        talk.send(begin).await;
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while !piece.is_empty() && talk.try_chunk(piece.as_bytes()).await {
            tick.tick().await;
        }
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).bounds(|bounds| bounds.total = SHORT).start().await;
    (edge, worker)
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_call_without_an_answer_ends_with_its_total_time() {
    let (edge, worker) = begun("", "").await;
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!((answer.status, answer.code()), (504, -31504));
    assert!(answer.message().contains("Outcome unknown") && answer.message().contains("not repeated"));
    worker.closed(1).await;
}

#[tokio::test]
async fn a_stream_that_goes_on_and_on_ends_with_an_error_event_at_its_total_time() {
    let (edge, worker) = begun(EVENTS, "data: {}\n\n").await;
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains(r#""id":7,"error":{"code":-31504"#), "{answer:?}");
    assert!(answer.text().ends_with("}\n\n"));
    worker.closed(1).await;
}

#[tokio::test]
async fn json_that_trickles_on_and_on_is_cut_at_its_total_time() {
    let (edge, worker) = begun(JSON, " ").await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    assert_eq!(status(&client.head().await), 200);
    assert!(!client.rest().await.ends_with(b"0\r\n\r\n"), "half a body must not look whole");
    worker.closed(1).await;
}

#[tokio::test]
async fn a_call_that_outlives_its_client_ends_at_its_total_time_too() {
    for (begin, piece) in [("", ""), (EVENTS, ""), (EVENTS, "data: {}\n\n")] {
        let (edge, worker) = begun(begin, piece).await;
        let session = edge.session().await;
        let mut client = edge.client().await;
        client.post(&[("Mcp-Session-Id", &session)], LIST).await;
        worker.arrivals(2).await;
        drop(client);
        worker.closed(1).await;
    }
}

#[tokio::test]
async fn a_stream_without_an_end_of_its_own_outlives_the_total_time_of_a_call() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.method != "GET" {
            talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await;
            return Next::Keep(talk);
        }
        talk.events().await;
        let mut tick = tokio::time::interval(SHORT / 3);
        for _ in 0..9 {
            tick.tick().await;
            talk.chunk("data: {}\n\n").await;
        }
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).bounds(|bounds| bounds.total = SHORT).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.request("GET", "/mcp", &[("Mcp-Session-Id", &session)], None).await;
    assert_eq!(client.answer().await.text(), "data: {}\n\n".repeat(9));
}

/// What comes of an answer of so many bytes where 1000 may pass: the status, and whether it came whole.
async fn sized(head: &'static str, length: usize) -> (u16, bool) {
    let worker = Worker::scripted(move |_, mut talk| async move {
        let body = "x".repeat(length);
        let is_stream = head.contains("event-stream");
        if head.contains("chunked") {
            talk.send(head).await;
            talk.chunk(&body[..length / 2]).await;
            talk.chunk(&body[length / 2..]).await;
            if is_stream {
                talk.chunk("\n\ndata: {\"id\":7,\"result\":{}}\n\n").await;
            }
            talk.last_chunk().await;
        } else {
            talk.json("", &body).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).bounds(|bounds| bounds.most_reply_bytes = 1000).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    let text = String::from_utf8(client.rest_or_end().await).unwrap();
    if status(&text) == 502 {
        assert!(text.contains("1000 bytes") && text.contains("-31502") && !text.contains("xxx"), "{text}");
    }
    let whole = text.ends_with("0\r\n\r\n") || text.contains("ontent-length");
    (status(&text), whole)
}

#[tokio::test]
async fn an_answer_of_json_has_a_size_and_an_event_stream_has_none() {
    assert_eq!(sized("", 1000).await, (200, true));
    assert_eq!(sized("", 1001).await.0, 502);
    assert_eq!(sized(JSON, 1000).await, (200, true));
    assert_eq!(sized(JSON, 1001).await, (200, false));
    assert_eq!(sized(EVENTS, 100_000).await, (200, true));
}

#[tokio::test]
async fn a_tenant_has_so_many_streams_and_calls_beside_them() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.method == "GET" {
            talk.events().await;
            talk.chunk("data: {}\n\n").await;
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)])
        .with(|config| config.exchanges.most_streams_per_tenant = 2)
        .start()
        .await;
    let (alice, bob) = (edge.session().await, edge.session_of("tok-bob").await);
    let open = async |token: &str, session: &str| {
        let mut client = edge.client().await;
        let bearer = format!("Bearer {token}");
        client.request("GET", "/mcp", &[("Mcp-Session-Id", session), ("Authorization", &bearer)], None).await;
        let head = client.head().await;
        (status(&head), head.contains("retry-after: "), client)
    };
    let first = open("tok-alice", &alice).await;
    let second = open("tok-alice", &alice).await;
    assert_eq!((first.0, second.0), (200, 200));
    let (refused, says_when, _) = open("tok-alice", &alice).await;
    assert_eq!((refused, says_when), (429, true));
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &alice)], LIST).await.status, 200);
    assert_eq!(open("tok-bob", &bob).await.0, 200);
    drop(first);
    within(async { while open("tok-alice", &alice).await.0 != 200 {} }).await;
}
