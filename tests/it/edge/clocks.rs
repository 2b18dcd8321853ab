//! Who is slow is let go, and who is merely slow-spoken is not.

use std::time::Duration;

use super::multiplexed::Multiplexed;
use super::setting::{Edge, INIT, MODERN, MODERN_LIST, Setting};
use super::talk::{Client, status};
use super::worker::{Next, Worker};

const SHORT: Duration = Duration::from_millis(300);

async fn edge(worker: &Worker, change: impl FnOnce(&mut playground::edge::Config)) -> Edge {
    Setting::sandbox(worker).with(change).start().await
}

#[tokio::test]
async fn a_connection_that_does_not_say_what_it_wants_is_closed() {
    let worker = Worker::plain().await;
    let edge = edge(&worker, |config| config.connections.head = SHORT).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [&preface[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
    for silent in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n", b"POST /mcp HTTP/1.1\r\nHost: a\r\nX: ", preface, &settings] {
        let mut client = edge.client().await;
        client.send(silent).await;
        client.rest().await;
    }
}

#[tokio::test]
async fn a_kept_connection_rests_for_longer_than_a_head_may_take_and_then_ends() {
    let worker = Worker::plain().await;
    let edge = edge(&worker, |config| {
        config.connections.head = SHORT;
        config.connections.idle = 5 * SHORT;
    })
    .await;
    let mut client = edge.client().await;
    for _ in 0..2 {
        client.post(&[], INIT).await;
        assert_eq!(client.answer().await.status, 200);
        let closed = tokio::time::timeout(2 * SHORT, client.rest()).await;
        assert!(closed.is_err(), "closed while it may rest");
    }
    client.rest().await;
    client = edge.client().await;
    client.post(&[], INIT).await;
    assert_eq!(client.answer().await.status, 200);
    client.send("POST /mcp HT").await;
    client.rest().await;
}

#[tokio::test]
async fn a_body_that_stops_arriving_is_given_up_with_its_slot() {
    let worker = Worker::plain().await;
    let edge = edge(&worker, |config| {
        config.requests.body_idle = SHORT;
        config.exchanges.most = 1;
    })
    .await;
    for _ in 0..2 {
        let mut client = edge.client().await;
        client.post(&[("Content-Length", "100")], "{").await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.code()), (408, -31408));
        client.rest().await;
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_body_that_trickles_is_given_up_at_its_least_rate_and_at_its_total() {
    let worker = Worker::plain().await;
    let trickled = async |edge: &Edge| {
        let mut client = edge.client().await;
        client.post(&[("Content-Length", "100000")], "{").await;
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while client.offer(" ").await && !client.has_answer() {
            tick.tick().await;
        }
        client.answer().await.status
    };
    let slow = edge(&worker, |config| {
        config.requests.body_idle = SHORT;
        config.requests.body_least_rate = 1000;
    })
    .await;
    assert_eq!(trickled(&slow).await, 408);
    let total = edge(&worker, |config| config.requests.body_total = 2 * SHORT).await;
    assert_eq!(trickled(&total).await, 408);
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go_and_its_call_with_it() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        let event = [b"data: ".to_vec(), vec![b'x'; 60_000], b"\n\n".to_vec()].concat();
        while talk.try_chunk(&event).await {}
        Next::Close(talk)
    })
    .await;
    let edge = edge(&worker, |config| {
        config.connections.write_stall = 2 * SHORT;
        config.connections.piece = 2 * SHORT;
    })
    .await;
    let mut slow = edge.client().await;
    slow.post(MODERN, MODERN_LIST).await;
    assert_eq!(status(&slow.head().await), 200);
    worker.closed(1).await;
    let mut slow = Multiplexed::connect(edge.address).await;
    let response = slow.post(MODERN, MODERN_LIST).await;
    assert_eq!(response.status(), 200);
    worker.closed(2).await;
    drop(response);
}

#[tokio::test]
async fn a_client_that_reads_a_long_answer_steadily_is_served_to_its_end() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        for _ in 0..200 {
            talk.chunk([b"data: ".to_vec(), vec![b'x'; 60_000], b"\n\n".to_vec()].concat()).await;
        }
        talk.chunk(ANSWER).await;
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = edge(&worker, |config| config.connections.write_stall = 4 * SHORT).await;
    let mut client: Client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    assert_eq!(client.answer().await.body.len(), 200 * 60_008 + ANSWER.len());
}

const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
