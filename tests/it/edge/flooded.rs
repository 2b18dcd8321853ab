//! HTTP/2 that only costs, in ten ways: each connection is ended or its frames are absorbed, nothing of it comes to the
//! worker, and who calls next is served.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::multiplexed::Multiplexed;
use super::setting::{Edge, MODERN, MODERN_LIST, Setting, within};
use super::worker::Worker;

type Frames = fn() -> Vec<u8>;

/// What is sent, and whether the connection has to end for it.
const FLOODS: [(&str, Frames, Due); 10] = [
    ("streams that are reset as soon as they are opened", resets, Due::Ended),
    ("a head that goes on and on", || continued(b"\0\x01x\x01y"), Due::Ended),
    ("a head that goes on with nothing", || continued(b""), Due::Ended),
    ("data without bytes", empty_data, Due::Ended),
    ("streams that the edge has to reset", made_to_reset, Due::Ended),
    ("settings", || repeated(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64"), Due::Either),
    ("pings", || repeated(PING, 0, 0, &[1; 8]), Due::Either),
    ("priorities", || repeated(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]), Due::Either),
    ("heads that refer to a long field again and again", referred, Due::Either),
    ("answers that may not be sent", stalled, Due::Either),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Ended,
    Either,
}

#[tokio::test]
async fn floods_of_frames_end_their_connection_or_are_absorbed_and_the_next_call_is_served() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker)
        .with(|config| {
            (config.rates.failures_per_minute, config.rates.failures_burst) = (1_000_000, 1_000_000);
            (config.rates.refusals_per_second, config.rates.refusals_burst) = (1_000_000, 1_000_000);
        })
        .start()
        .await;
    for (served, (what, flood, due)) in FLOODS.into_iter().enumerate() {
        let told = sent(&edge, &flood()).await;
        assert!(told == Told::Ended || due == Due::Either, "{what}: {told:?}");
        let mut next = Multiplexed::connect(edge.address).await;
        assert_eq!(next.post(MODERN, MODERN_LIST).await.status(), 200, "after {what}");
        assert_eq!(worker.count(), served + 1, "{what}");
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// Told to go away, or closed.
    Ended,
    /// A ping behind it all was answered.
    Absorbed,
}

/// Sends all of it, reading meanwhile what comes back, up to the answer to a ping at its end.
async fn sent(edge: &Edge, flood: &[u8]) -> Told {
    let stream = within(TcpStream::connect(edge.address)).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(SETTINGS, 0, 0, b"")[..]].concat();
    let bytes = [&begin[..], flood, &frame(PING, 0, 0, LAST)].concat();
    let send = async {
        // Whoever ends a connection need not take the rest of it.
        let _ = write.write_all(&bytes).await;
    };
    let hear = async {
        loop {
            let mut head = [0; 9];
            if read.read_exact(&mut head).await.is_err() {
                return Told::Ended;
            }
            let mut body = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
            if head[3] == GO_AWAY || read.read_exact(&mut body).await.is_err() {
                return Told::Ended;
            }
            if head[3] == PING && body == LAST {
                return Told::Absorbed;
            }
        }
    };
    within(async {
        tokio::pin!(hear, send);
        tokio::select! {
            told = &mut hear => told,
            () = send => hear.await,
        }
    })
    .await
}

fn resets() -> Vec<u8> {
    streams(2000)
        .flat_map(|stream| [request(stream, END_STREAM), frame(RESET, 0, stream, &[0, 0, 0, 8])].concat())
        .collect()
}

fn made_to_reset() -> Vec<u8> {
    streams(2000).flat_map(|stream| [request(stream, 0), frame(WINDOW, 0, stream, &[0; 4])].concat()).collect()
}

fn continued(piece: &[u8]) -> Vec<u8> {
    [frame(HEADERS, 0, 1, &head()), repeated(CONTINUATION, 0, 1, piece)].concat()
}

fn empty_data() -> Vec<u8> {
    [request(1, 0), repeated(DATA, 0, 1, b"")].concat()
}

/// The first head teaches a field of four thousand bytes, which each later one names a thousand times by one byte.
fn referred() -> Vec<u8> {
    // A new name that is remembered, and a length of four thousand.
    let taught = [&head()[..], b"\x40\x01x\x7f\xa1\x1e", &[b'a'; 4000]].concat();
    let named = [&head()[..], &[0xbe; 1000]].concat();
    let first = frame(HEADERS, END_HEADERS | END_STREAM, 1, &taught);
    let later = streams(200).skip(1).flat_map(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &named));
    first.into_iter().chain(later).collect()
}

/// No byte of a body may be sent to whoever asks for a thousand.
fn stalled() -> Vec<u8> {
    let window = frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0");
    window.into_iter().chain(streams(1000).flat_map(|stream| request(stream, END_STREAM))).collect()
}

fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// A whole request without a credential.
fn request(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &head())
}

fn head() -> Vec<u8> {
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/mcp"), (":authority", "a")];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn repeated(kind: u8, flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(kind, flags, stream, bytes).repeat(20_000)
}

fn frame(kind: u8, flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), bytes].concat()
}

const LAST: &[u8] = b"the last";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
