//! Event streams: at once, untouched, whole, and for as long as they live.

use std::sync::Arc;
use std::time::Duration;

use playground::worker::terms::Bounds;
use tokio::sync::watch;

use crate::edge::setting::{Edge, LIST, MODERN, MODERN_LIST, Setting, within};
use crate::edge::talk::{Client, header, status};
use crate::edge::worker::{Next, Talk, Worker};

/// Between two reports of a call.
const PAUSE: Duration = Duration::from_millis(40);

/// Every way to have a stream: a call of either era, and GET.
const WAYS: [&str; 3] = ["a legacy call", "a modern call", "GET"];

/// A worker with sessions that streams these pieces to whatever is not `initialize`, each once its turn has come.
async fn streaming(pieces: &'static [&'static [u8]], turn: watch::Receiver<usize>) -> Worker {
    Worker::scripted(move |arrival, mut talk| {
        let mut turn = turn.clone();
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await;
                return Next::Keep(talk);
            }
            talk.events().await;
            for (at, piece) in pieces.iter().enumerate() {
                turn.wait_for(|turn| *turn > at).await.unwrap();
                talk.chunk(piece).await;
            }
            turn.wait_for(|turn| *turn > pieces.len()).await.unwrap();
            talk.last_chunk().await;
            Next::Keep(talk)
        }
    })
    .await
}

async fn opened(edge: &Edge, way: &str, session: &str) -> Client {
    let mut client = edge.client().await;
    match way {
        "GET" => client.request("GET", "/mcp", &[("Mcp-Session-Id", session)], None).await,
        "a legacy call" => client.post(&[("Mcp-Session-Id", session)], LIST).await,
        _ => client.post(MODERN, MODERN_LIST).await,
    }
    client
}

#[tokio::test]
async fn the_head_comes_before_any_event_and_each_event_before_the_next_is_made() {
    const PIECES: &[&[u8]] = &[b"data: 1\n\n", b"data: 2\n\n", b"data: {\"id\":7,\"result\":{}}\n\n"];
    for way in WAYS {
        let (go, turn) = watch::channel(0);
        let worker = streaming(PIECES, turn).await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = edge.session().await;
        let mut client = opened(&edge, way, &session).await;
        let head = client.head().await;
        assert_eq!((status(&head), header(&head, "content-type")), (200, Some("text/event-stream")), "{way}");
        assert_eq!((header(&head, "content-length"), header(&head, "content-encoding")), (None, None), "{way}");
        assert_eq!(header(&head, "x-accel-buffering"), Some("no"), "{way}");
        assert_eq!(header(&head, "cache-control"), Some("no-cache, no-transform"), "{way}");
        for (at, piece) in PIECES.iter().enumerate() {
            go.send_replace(at + 1);
            assert_eq!(client.chunk().await.as_deref(), Some(*piece), "{way}");
        }
        go.send_replace(usize::MAX);
        assert_eq!(client.chunk().await, None, "{way}");
    }
}

#[tokio::test]
async fn every_form_of_an_event_passes_byte_for_byte_wherever_it_is_cut() {
    const PIECES: &[&[u8]] = &[
        b"\xef\xbb\xbfid: 0\ndata:\n\n",
        b": a comment\r\n\r\n",
        b":\n\nretry: 3000\r\rid\n\n",
        b"event: message\r\ndata: {\"a\":\"\xf0\x9f",
        b"\x98\x80\xc3",
        b"\xa4\"}\r",
        b"\n\r",
        b"\ndata: one\ndata: two\ndata\n\n",
        b"id: 7\nunknown: x\ndata:no space\n\n\n\n",
        b"\x00\xff\xfe no text at all\n\n",
        // With it a call's stream ends.
        b"data: {\"id\":7,\r\ndata: \"result\":{}}\n\n",
    ];
    for way in WAYS {
        let (_go, turn) = watch::channel(usize::MAX);
        let worker = streaming(PIECES, turn).await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = edge.session().await;
        let answer = opened(&edge, way, &session).await.answer().await;
        assert!(answer.body == PIECES.concat(), "{way}: {:?}", String::from_utf8_lossy(&answer.body));
    }
}

#[tokio::test]
async fn progress_and_the_servers_own_requests_come_on_the_calls_stream_in_their_order_before_the_result() {
    const ASKS: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"sampling/createMessage\",\"params\":{}}\n\n";
    const RESULT: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
    let progress = |n: u8| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":1,\"progress\":{n}}}}}\n\n"
        )
    };
    let answered = Arc::new(watch::Sender::new(false));
    let worker = Worker::scripted(move |arrival, mut talk| {
        let answered = Arc::clone(&answered);
        async move {
            match arrival.rpc_method().as_str() {
                "initialize" => talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await,
                "tools/list" => {
                    talk.events().await;
                    for n in 1..=3 {
                        talk.chunk(progress(n)).await;
                    }
                    talk.chunk(ASKS).await;
                    answered.subscribe().wait_for(|answered| *answered).await.unwrap();
                    talk.chunk(RESULT).await;
                    talk.last_chunk().await;
                }
                _ => {
                    answered.send_replace(true);
                    talk.send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
                }
            }
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let mut client = opened(&edge, "a legacy call", &session).await;
    assert_eq!(status(&client.head().await), 200);
    let mut heard = String::new();
    while !heard.contains("sampling") {
        heard.push_str(&String::from_utf8(client.chunk().await.expect("more")).unwrap());
    }
    let reply = r#"{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}"#;
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], reply).await.status, 202);
    while let Some(piece) = client.chunk().await {
        heard.push_str(&String::from_utf8(piece).unwrap());
    }
    assert_eq!(heard, format!("{}{}{}{ASKS}{RESULT}", progress(1), progress(2), progress(3)));
    let arrivals = worker.arrivals(3).await;
    assert_eq!((arrivals.len(), arrivals[2].body.as_slice()), (3, reply.as_bytes()));
}

#[tokio::test]
async fn a_call_that_reports_all_the_while_outlives_the_clock_on_silence_many_times() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "initialize" {
            talk.reply(&arrival).await;
            return Next::Keep(talk);
        }
        talk.events().await;
        let mut tick = tokio::time::interval(PAUSE);
        for _ in 0..30 {
            tick.tick().await;
            talk.chunk("data: {}\n\n").await;
        }
        talk.chunk("data: {\"id\":7,\"result\":{}}\n\n").await;
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let silence = 5 * PAUSE;
    let edge = Setting::sandbox(&worker).bounds(|bounds| (bounds.head, bounds.idle) = (silence, silence)).start().await;
    let session = edge.session().await;
    for way in ["a legacy call", "a modern call"] {
        let answer = opened(&edge, way, &session).await.answer().await;
        let whole = "data: {}\n\n".repeat(30) + "data: {\"id\":7,\"result\":{}}\n\n";
        assert_eq!((answer.status, answer.text()), (200, &*whole), "{way}");
    }
    let default = Bounds::default();
    let longest = Duration::from_secs(121);
    assert!(default.head > longest && default.idle > longest && default.total > default.head);
}

#[tokio::test]
async fn calls_that_took_too_long_keep_no_one_from_the_worker() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.json()["id"] == 7 {
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.reply(&arrival).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)])
        .bounds(|bounds| bounds.head = Duration::from_millis(50))
        .start()
        .await;
    let served = MODERN_LIST.replace("\"id\":7", "\"id\":8");
    for _ in 0..10 {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 504);
        for token in ["Bearer tok-alice", "Bearer tok-bob"] {
            let answer = edge.ask(&[MODERN, &[("Authorization", token)]].concat(), &served).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    assert_eq!(worker.count(), 30);
}

/// Streams that say no more after what is begun, until they are told how to go on.
async fn halting(begun: &'static str, rest: &'static str, turn: watch::Receiver<bool>) -> Worker {
    Worker::scripted(move |arrival, mut talk: Talk| {
        let mut turn = turn.clone();
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.json("Mcp-Session-Id: S\r\n", &arrival.result()).await;
                return Next::Keep(talk);
            }
            talk.events().await;
            talk.chunk(begun).await;
            turn.wait_for(|turn| *turn).await.unwrap();
            talk.chunk(rest).await;
            talk.last_chunk().await;
            Next::Keep(talk)
        }
    })
    .await
}

#[tokio::test]
async fn a_comment_comes_between_frames_and_wherever_else_a_stream_halts_it_does_not() {
    let often = |config: &mut playground::edge::Config| config.answers.comment = Duration::from_millis(10);
    let (_never, turn) = watch::channel(false);
    let resting = halting("data: 1\n\n", "", turn).await;
    let control = Setting::native(&[("alice", &resting)]).with(often).start().await;
    let session = control.session().await;
    for way in WAYS {
        for (begun, rest) in [("data: 2\n", "\n"), ("da", "ta: 2\n\n"), ("data: 2\r\n", "\r\n"), ("id: 3", "\n\n")] {
            let (go, turn) = watch::channel(false);
            let worker = halting(begun, rest, turn).await;
            let edge = Setting::native(&[("alice", &worker)]).with(often).start().await;
            let session_here = edge.session().await;
            let mut halted = opened(&edge, way, &session_here).await;
            assert_eq!(status(&halted.head().await), 200);
            assert_eq!(first(&mut halted).await, begun.as_bytes(), "{way}");
            // A stream that rests between frames has had several by now; the halted one has not.
            let mut beside = opened(&control, way, &session).await;
            beside.head().await;
            assert_eq!(first(&mut beside).await, b"data: 1\n\n", "{way}");
            for _ in 0..5 {
                assert_eq!(beside.chunk().await.as_deref(), Some(&b": keep-alive\n\n"[..]), "{way}");
            }
            go.send_replace(true);
            assert_eq!(halted.chunk().await.as_deref(), Some(rest.as_bytes()), "{way}: {begun:?}");
        }
    }
}

/// What comes first that is no comment; a stream that has not begun rests too.
async fn first(client: &mut Client) -> Vec<u8> {
    loop {
        let piece = client.chunk().await.expect("more");
        if piece != b": keep-alive\n\n" {
            return piece;
        }
    }
}

#[tokio::test]
async fn where_comments_are_put_off_for_ever_a_silent_stream_stays_silent() {
    let (_never, turn) = watch::channel(false);
    let worker = halting("data: 1\n\n", "", turn).await;
    let edge = Setting::native(&[("alice", &worker)])
        .with(|config| config.answers.comment = Duration::MAX)
        .bounds(|bounds| bounds.idle = Duration::from_millis(100))
        .start()
        .await;
    let session = edge.session().await;
    let mut client = opened(&edge, "GET", &session).await;
    client.head().await;
    assert_eq!(client.chunk().await.as_deref(), Some(&b"data: 1\n\n"[..]));
    assert_eq!(within(client.rest()).await, b"", "it is cut after its silence, with nothing said before");
}
