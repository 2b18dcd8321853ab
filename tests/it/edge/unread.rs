//! A refusal on HTTP/2 that does not wait for the body, and what becomes of the body.

use super::frames::{Frame, Frames, STREAM_WINDOW};
use super::setting::Setting;
use super::worker::Worker;

#[tokio::test]
async fn a_refused_client_ends_its_body_in_peace() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = Frames::connect(edge.address).await;
    for (stream, length) in [(1, 2), (3, 1000), (5, 64 * 1024), (7, 100_000), (9, 1024 * 1024)] {
        client.promise(stream, length).await;
        // Nothing of the body has been sent when the whole answer is there.
        assert!(client.answer(stream).await.contains("jsonrpc"));
        client.ping().await;
        unharmed(&mut client, stream).await;
        assert_eq!(client.push(stream, length).await, (length, None), "{length} bytes");
        client.ping().await;
        unharmed(&mut client, stream).await;
    }
}

#[tokio::test]
async fn a_body_that_stays_away_is_waited_for_until_its_time_is_over() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = Frames::connect(edge.address).await;
    client.promise(1, 10_000_000).await;
    assert!(client.answer(1).await.contains("jsonrpc"));
    client.ping().await;
    unharmed(&mut client, 1).await;
    loop {
        if let Frame::Reset { stream, code } = client.next().await {
            assert_eq!((stream, code), (1, NO_ERROR));
            break;
        }
    }
}

#[tokio::test]
async fn of_a_refused_body_a_bounded_part_is_read() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = Frames::connect(edge.address).await;
    client.promise(1, 10_000_000).await;
    client.answer(1).await;
    let (sent, code) = client.push(1, 10_000_000).await;
    assert_eq!(code, Some(NO_ERROR));
    assert!((1024 * 1024..=1024 * 1024 + STREAM_WINDOW + A_FRAME).contains(&sent), "{sent}");
}

#[tokio::test]
async fn of_many_refused_bodies_at_once_less_is_read() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = Frames::connect(edge.address).await;
    for stream in [1, 3, 5, 7, 9, 11, 13, 15, 17] {
        client.promise(stream, 10_000_000).await;
        client.answer(stream).await;
    }
    let (sent, code) = client.push(17, 10_000_000).await;
    assert_eq!(code, Some(NO_ERROR));
    assert!((64 * 1024..=64 * 1024 + STREAM_WINDOW + A_FRAME).contains(&sent), "{sent}");
}

/// Reads to the answer of a ping: what the edge had to say of the stream has come before it.
async fn unharmed(client: &mut Frames, watched: u32) {
    loop {
        let frame = client.next().await;
        if frame == Frame::Pong {
            return;
        }
        assert!(!matches!(frame, Frame::Reset { stream, .. } if stream == watched), "{frame:?}");
    }
}

const NO_ERROR: u32 = 0;

/// The largest a client sends.
const A_FRAME: usize = 16 * 1024;
