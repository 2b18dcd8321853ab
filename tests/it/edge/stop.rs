//! A stop: nothing new, nothing idle, nothing lost that can be finished.

use std::time::Duration;

use http_body_util::BodyExt;
#[cfg(feature = "tls")]
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::multiplexed::{Multiplexed, text};
use super::setting::{Edge, INIT, LIST, MODERN, MODERN_LIST, Setting, within};
use super::talk::Client;
use super::worker::{Next, Worker};
use crate::process::PATIENCE;

#[tokio::test]
async fn streams_and_idle_connections_end_while_a_call_gets_its_answer() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let mut turn = turn.clone();
        async move {
            match (arrival.method.as_str(), arrival.rpc_method().as_str()) {
                (_, "initialize") => talk.json("Mcp-Session-Id: U\r\n", &arrival.result()).await,
                ("GET", _) => {
                    talk.events().await;
                    talk.chunk("data: 1\n\n").await;
                    talk.abandoned().await;
                }
                _ => {
                    turn.wait_for(|turn| *turn).await.unwrap();
                    talk.reply(&arrival).await;
                }
            }
            Next::Keep(talk)
        }
    })
    .await;
    let mut edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let in_session = [("Mcp-Session-Id", session.as_str())];
    let (mut idle, mut fresh) = (edge.client().await, edge.client().await);
    idle.post(&[], INIT).await;
    idle.answer().await;
    fresh.send("").await;
    let mut stream = edge.client().await;
    stream.request("GET", "/mcp", &in_session, None).await;
    stream.head().await;
    stream.chunk().await.unwrap();
    let mut call = edge.client().await;
    call.post(&in_session, LIST).await;
    worker.arrivals(4).await;

    edge.tell_to_stop();
    idle.rest().await;
    fresh.rest().await;
    assert_eq!(stream.chunk().await, None, "the stream ends well");
    assert!(within(TcpStream::connect(edge.address)).await.is_err(), "nobody listens any more");
    go.send_replace(true);
    let answer = call.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(edge.drained().await.cut, 0);
}

/// An edge that was told to stop when it had accepted so many who have said nothing.
async fn stopped(setting: Setting, newcomers: Duration, count: usize) -> (Edge, Vec<TcpStream>) {
    let mut edge = setting.with(|config| config.connections.newcomers = newcomers).start().await;
    let mut fresh = Vec::new();
    for _ in 0..count {
        fresh.push(within(TcpStream::connect(edge.address)).await.unwrap());
    }
    // Connections are accepted one after the other.
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    edge.tell_to_stop();
    within(async { while TcpStream::connect(edge.address).await.is_ok() {} }).await;
    (edge, fresh)
}

#[tokio::test]
async fn whoever_was_accepted_before_a_stop_is_heard_and_answered_once() {
    let worker = Worker::plain().await;
    let (mut edge, fresh) = stopped(Setting::sandbox(&worker), PATIENCE, 2).await;
    let [first, second] = fresh.try_into().unwrap();
    let mut client = Client::over(first);
    client.post(MODERN, MODERN_LIST).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(client.rest().await, b"");
    let mut multiplexed = Multiplexed::over(second).await;
    assert_eq!(multiplexed.post(MODERN, MODERN_LIST).await.status(), 200);
    multiplexed.closed().await;
    assert_eq!(edge.drained().await.cut, 0);
    assert_eq!(worker.count(), 3);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn over_tls_too_whoever_was_accepted_before_a_stop_is_heard() {
    let (worker, certificate) = (Worker::plain().await, super::certificate::Certificate::new());
    let setting = Setting::sandbox(&worker).tls(super::encrypted::identity(&certificate));
    let mut edge = setting.with(|config| config.connections.newcomers = PATIENCE).start().await;
    let fresh = within(TcpStream::connect(edge.address)).await.unwrap();
    // Those that come later have shaken hands, so this one was accepted.
    let shaken = super::encrypted::connect(&edge, &certificate, &[b"http/1.1"]).await;
    let multiplexed = super::encrypted::connect(&edge, &certificate, &[b"h2"]).await;
    edge.tell_to_stop();
    within(async { while TcpStream::connect(edge.address).await.is_ok() {} }).await;
    for mut stream in [super::encrypted::shaken(fresh, &certificate, &[b"http/1.1"]).await, shaken] {
        let head = "POST /mcp HTTP/1.1\r\nHost: edge.example\r\nAuthorization: Bearer tok-alice\r\n\
            Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let more: String = MODERN.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("{head}{more}Content-Length: {}\r\n\r\n{MODERN_LIST}", MODERN_LIST.len());
        within(stream.write_all(request.as_bytes())).await.unwrap();
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    let mut multiplexed = Multiplexed::over(multiplexed).await;
    assert_eq!(multiplexed.post(MODERN, MODERN_LIST).await.status(), 200);
    multiplexed.closed().await;
    assert_eq!(edge.drained().await.cut, 0);
}

#[tokio::test]
async fn who_says_nothing_holds_a_stop_up_no_longer_than_that() {
    let worker = Worker::plain().await;
    let (mut edge, fresh) = stopped(Setting::sandbox(&worker), Duration::from_millis(20), 2).await;
    for stream in fresh {
        assert_eq!(Client::over(stream).rest().await, b"");
    }
    assert_eq!(edge.drained().await.cut, 0);
}

#[tokio::test]
async fn what_is_not_done_by_the_deadline_is_cut_and_counted() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let mut edge =
        Setting::sandbox(&worker).with(|config| config.stop.drain = Duration::from_millis(100)).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    worker.arrivals(1).await;
    edge.tell_to_stop();
    assert_eq!(edge.drained().await.cut, 1);
    assert_eq!(client.rest().await, b"");
    worker.closed(1).await;
}

#[tokio::test]
async fn an_edge_with_nothing_to_do_stops_at_once() {
    let worker = Worker::plain().await;
    let mut edge = Setting::sandbox(&worker).start().await;
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    edge.tell_to_stop();
    assert_eq!(edge.drained().await.cut, 0);
}

const LISTEN: &str = r#"{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

async fn listening_worker() -> Worker {
    Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        talk.chunk("data: {\"method\":\"notifications/subscriptions/acknowledged\"}\n\n").await;
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await
}

#[tokio::test]
async fn a_subscription_is_completed_when_the_edge_stops() {
    let worker = listening_worker().await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client.post(&[MODERN[0], ("mcp-method", "subscriptions/listen")], LISTEN).await;
    client.head().await;
    client.chunk().await.unwrap();
    edge.tell_to_stop();
    let last = String::from_utf8(client.chunk().await.unwrap()).unwrap();
    let message = last.trim().strip_prefix("event: message\ndata: ").unwrap();
    let message: serde_json::Value = serde_json::from_str(message).unwrap();
    assert_eq!((&message["id"], &message["result"]["resultType"]), (&"sub".into(), &"complete".into()));
    assert_eq!(message["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    assert_eq!(client.chunk().await, None);
    assert_eq!(edge.drained().await.cut, 0);
}

#[tokio::test]
async fn a_revoked_credentials_streams_end_and_others_go_on() {
    let worker = listening_worker().await;
    let edge = Setting::sandbox(&worker).start().await;
    let listen = [MODERN[0], ("mcp-method", "subscriptions/listen")];
    let mut alice = edge.client().await;
    alice.post(&listen, LISTEN).await;
    let mut bob = edge.client().await;
    bob.post(&[&listen[..], &[("Authorization", "Bearer tok-bob")]].concat(), LISTEN).await;
    for client in [&mut alice, &mut bob] {
        client.head().await;
        client.chunk().await.unwrap();
    }
    super::setting::write_store(&edge.store(), &[("tok-bob", "bob")]);
    assert_eq!(edge.ask(&[], INIT).await.status, 401);
    alice.chunk().await.unwrap();
    assert_eq!(alice.chunk().await, None);
    let silent = tokio::time::timeout(Duration::from_millis(50), bob.chunk()).await;
    assert!(silent.is_err(), "bob's stream stays open");
}

#[tokio::test]
async fn a_multiplexed_connection_finishes_its_call_and_goes() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::later(turn).await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let mut client = Multiplexed::connect(edge.address).await;
    let answer = async {
        let response = client.post(MODERN, MODERN_LIST).await;
        text(response).await
    };
    let stop = async {
        worker.arrivals(1).await;
        edge.tell_to_stop();
        go.send_replace(true);
    };
    let (answer, ()) = tokio::join!(answer, stop);
    assert!(answer.contains("tools/list"), "{answer}");
    client.closed().await;
    assert_eq!(edge.drained().await.cut, 0);
}

#[tokio::test]
async fn a_legacy_call_whose_client_left_is_waited_for() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::calls_later(turn).await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.post(&[("Mcp-Session-Id", &session)], r#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#).await;
    worker.arrivals(2).await;
    drop(client);
    edge.tell_to_stop();
    go.send_replace(true);
    assert_eq!(edge.drained().await.cut, 0);
}

#[tokio::test]
async fn a_stalled_reader_does_not_hold_the_stop_beyond_its_deadline() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        let event = [b"data: ".to_vec(), vec![b'x'; 60_000], b"\n\n".to_vec()].concat();
        while talk.try_chunk(&event).await {}
        Next::Close(talk)
    })
    .await;
    let mut edge =
        Setting::sandbox(&worker).with(|config| config.stop.drain = Duration::from_millis(200)).start().await;
    let mut client = Multiplexed::connect(edge.address).await;
    let mut response = client.post(MODERN, MODERN_LIST).await;
    within(response.body_mut().frame()).await.unwrap().unwrap();
    edge.tell_to_stop();
    assert_eq!(edge.drained().await.cut, 1);
}
