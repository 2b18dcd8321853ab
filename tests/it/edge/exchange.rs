//! The exchange with the worker: what passes, what does not, and what a broken one may say.

use std::sync::Arc;

use tokio::sync::watch;

use playground::worker::Endpoint;

use super::setting::{INIT, INTERNAL, LIST, MODERN, MODERN_LIST, Setting, within};
use super::talk::{ABSENT, Answer, header};
use super::worker::{Next, Worker};

#[tokio::test]
async fn a_body_arrives_byte_for_byte_and_the_headers_are_ours() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let body = "  {\"params\":{\"arguments\":{\"k\":1.0e2,\"k\":18446744073709551616}}, \"id\":123456789012345678901234567890,\n\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"x\":\"\\u00e4\"}  ";
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("Cookie", "a=b"),
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Playground-Tenant", "bob"),
        ("x-tenant", "bob"),
        ("mcp_session_id", "x"),
        ("Mcp-Method", "on a legacy call"),
        ("Connection", "keep-alive, X-Gone"),
        ("X-Gone", "1"),
        ("Accept-Encoding", "gzip"),
    ];
    let answer = edge.ask(&headers, body).await;
    assert!(answer.text().contains(r#""id":123456789012345678901234567890,"#), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let arrival = &worker.arrivals(2).await[1];
    assert_eq!(arrival.body, body.as_bytes());
    let mut names: Vec<String> = arrival
        .head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.to_lowercase())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "accept",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "mcp-protocol-version",
            "x-playground-reference",
            "x-playground-tenant",
        ]
    );
    assert_eq!(arrival.header("authorization"), Some(format!("Bearer {INTERNAL}").as_str()));
    assert_eq!(arrival.header("x-playground-tenant"), Some("alice"));
    assert_eq!(arrival.header("host"), Some(worker.address.to_string().as_str()));
    assert!(!arrival.head.contains("tok-alice"));
}

#[tokio::test]
async fn a_modern_call_keeps_its_mirrored_headers_and_a_native_worker_learns_no_tenant() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let headers = [MODERN, &[("Mcp-Param-Path", "=?base64?w6Q=?="), ("Last-Event-ID", "1")]].concat();
    assert_eq!(edge.ask(&headers, MODERN_LIST).await.status, 200);
    let arrival = &worker.arrivals(1).await[0];
    assert_eq!(arrival.header("mcp-method"), Some("tools/list"));
    assert_eq!(arrival.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(arrival.header("mcp-param-path"), Some("=?base64?w6Q=?="));
    for absent in ["x-playground-tenant", "x-playground-reference", "last-event-id", "mcp-session-id"] {
        assert_eq!(arrival.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn a_worker_is_asked_at_its_own_path_and_the_others_at_the_originals() {
    for (path, wanted) in [(None, "/"), (Some("/mcp"), "/mcp")] {
        let worker = Worker::sessionful().await;
        let mut setting = Setting::native(&[("alice", &worker)]);
        if let Some(path) = path {
            setting.terms.path = Endpoint::parse(path).unwrap();
        }
        let edge = setting.start().await;
        let session = edge.session().await;
        let within = [("Authorization", "Bearer tok-alice"), ("Mcp-Session-Id", session.as_str())];
        for (method, body) in [("POST", Some(LIST)), ("DELETE", None)] {
            let mut client = edge.client().await;
            client.request(method, "/mcp", &within, body).await;
            client.answer().await;
        }
        for arrival in worker.arrivals(3).await {
            let line = format!("{} {wanted} HTTP/1.1\r\n", arrival.method);
            assert!(arrival.head.starts_with(&line), "{}", arrival.head);
        }
    }
}

#[tokio::test]
async fn a_stream_passes_chunk_by_chunk_as_it_comes() {
    let (go, turn) = watch::channel(0);
    let worker = Worker::scripted(move |_, mut talk| {
        let mut turn = turn.clone();
        async move {
            talk.events().await;
            for (at, piece) in PIECES.into_iter().enumerate() {
                turn.wait_for(|turn| *turn >= at).await.unwrap();
                talk.chunk(piece).await;
            }
            talk.last_chunk().await;
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    let head = client.head().await;
    assert_eq!(header(&head, "content-type"), Some("text/event-stream"));
    assert_eq!(header(&head, "cache-control"), Some("no-cache, no-transform"));
    assert_eq!(header(&head, "x-accel-buffering"), Some("no"));
    for (turn, piece) in PIECES.into_iter().enumerate() {
        go.send_replace(turn);
        assert_eq!(client.chunk().await.as_deref(), Some(piece.as_bytes()));
    }
    assert_eq!(client.chunk().await, None);
}

const PIECES: [&str; 3] =
    ["data: 1\r\n\r\n", ": c\n\nid: 2\nda", "ta: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\u{fffd}\"}\n\n"];

#[tokio::test]
async fn connections_to_a_worker_are_kept() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for _ in 0..5 {
        assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    }
    assert!(worker.arrivals(5).await.iter().all(|arrival| arrival.connection == 1));
}

#[tokio::test]
async fn the_same_id_twice_at_once_gets_each_its_own_answer() {
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let worker = Worker::scripted(move |arrival, mut talk| {
        let barrier = Arc::clone(&barrier);
        async move {
            if arrival.rpc_method() == "initialize" {
                talk.reply(&arrival).await;
            } else {
                barrier.wait().await;
                let text = arrival.json()["params"]["text"].to_string();
                talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":7,"result":{text}}}"#)).await;
            }
            Next::Keep(talk)
        }
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let call = async |text: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"text":"{text}"}}}}"#);
        edge.ask(&[("Mcp-Session-Id", &session)], &body).await.json()["result"].clone()
    };
    let (one, two) = tokio::join!(call("ONE"), call("TWO"));
    assert_eq!((one, two), ("ONE".into(), "TWO".into()));
}

/// What a client gets from a worker that answers `tools/list` with these bytes and closes.
async fn answered(bytes: &'static str) -> (Answer, usize) {
    let worker = Worker::scripted(move |_, mut talk| async move {
        talk.send(bytes).await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    (answer, worker.count())
}

#[tokio::test]
async fn a_worker_that_breaks_off_leaves_the_outcome_unknown_and_is_asked_once() {
    for bytes in ["", "HTTP/1.1 200", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
        let (answer, arrivals) = answered(bytes).await;
        assert_eq!((answer.status, answer.code(), arrivals), (502, -31502, 1), "{bytes}");
        assert!(answer.message().contains("Outcome unknown") && answer.message().contains("not repeated"));
        assert_eq!(answer.json()["id"], 7);
    }
}

#[tokio::test]
async fn a_workers_complaint_about_the_edge_never_reaches_the_client() {
    for status in
        ["301 Moved\r\nLocation: http://127.0.0.1:1/", "401 Unauthorized\r\nWWW-Authenticate: Bearer", "403 Forbidden"]
    {
        let reply: &'static str = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nX-Worker: secret\r\n\r\n").leak();
        let (answer, _) = answered(reply).await;
        assert_eq!(answer.status, 502, "{status}");
        assert!(!answer.head.contains("127.0.0.1:1") && !answer.head.contains("secret"));
        assert_eq!(answer.header("www-authenticate"), None);
    }
}

#[tokio::test]
async fn a_workers_error_keeps_its_status_and_never_comes_bare() {
    for status in [500, 502, 503] {
        let reply: &'static str =
            format!("HTTP/1.1 {status} X\r\nRetry-After: 9\r\nContent-Length: 3\r\n\r\nbad").leak();
        let (answer, arrivals) = answered(reply).await;
        assert_eq!((answer.status, arrivals), (status, 1));
        assert!(answer.message().contains("Outcome unknown"), "{}", answer.message());
    }
    let own = "HTTP/1.1 429 X\r\nContent-Type: application/json\r\nRetry-After: 9\r\nSet-Cookie: a=b\r\nServer: w\r\nContent-Length: 2\r\n\r\n{}";
    let (answer, _) = answered(own).await;
    assert_eq!((answer.status, answer.text(), answer.header("retry-after")), (429, "{}", Some("9")));
    assert_eq!((answer.header("set-cookie"), answer.header("server")), (None, None));
}

#[tokio::test]
async fn an_answer_no_client_can_read_is_not_passed_on() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    ] {
        let (answer, _) = answered(reply).await;
        assert_eq!((answer.status, answer.code()), (502, -31502), "{reply}");
    }
    let gone = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 63\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"no\"}}";
    assert_eq!(answered(gone).await.0.code(), -32601, "a modern method that the worker does not have");
}

#[tokio::test]
async fn a_half_answer_does_not_look_whole() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{").await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    assert_eq!(header(&client.head().await, "content-length"), Some("100"));
    assert_eq!(client.rest().await, b"{");
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_between_events_ends_with_an_error_and_within_one_is_cut() {
    for (piece, ends_well) in [("data: 1\n\n", true), ("data: 1\n", false)] {
        let worker = Worker::scripted(move |_, mut talk| async move {
            talk.events().await;
            talk.chunk(piece).await;
            Next::Close(talk)
        })
        .await;
        let edge = Setting::sandbox(&worker).start().await;
        let mut client = edge.client().await;
        client.post(MODERN, MODERN_LIST).await;
        client.head().await;
        let rest = String::from_utf8(client.rest_or_end().await).unwrap();
        assert_eq!(rest.contains("Outcome unknown"), ends_well, "{rest}");
        assert_eq!(rest.ends_with("0\r\n\r\n"), ends_well, "{rest}");
    }
}

#[tokio::test]
async fn a_worker_that_is_not_there_was_sent_nothing() {
    let worker = Worker::plain().await;
    let address = worker.address;
    let edge = Setting::sandbox(&worker).start().await;
    drop(worker);
    within(async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await
        }
    })
    .await;
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!((answer.status, answer.code(), answer.header("retry-after")), (503, -31503, Some("2")));
    assert!(answer.message().contains("was not sent"), "{}", answer.message());
    assert_eq!(answer.json()["id"], 7);
}

#[tokio::test]
async fn a_worker_that_is_known_to_be_down_is_not_even_tried() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    edge.presence.set(false);
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 503);
    edge.presence.set(true);
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn a_worker_that_closes_kept_connections_gets_no_call_twice() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        talk.reply(&arrival).await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut unknown = 0;
    for _ in 0..300 {
        let answer = edge.ask(MODERN, MODERN_LIST).await;
        match answer.status {
            200 => {}
            502 => unknown += 1,
            other => panic!("{other}"),
        }
    }
    assert!(unknown <= 1, "only the first race may be lost, and {unknown} were");
    assert!(worker.count() <= 300);
}

#[tokio::test]
async fn a_worker_that_does_not_answer_in_time_may_have_done_it() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge =
        Setting::sandbox(&worker).bounds(|bounds| bounds.head = std::time::Duration::from_millis(50)).start().await;
    let answer = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!((answer.status, answer.code()), (504, -31504));
    assert!(answer.message().contains("Outcome unknown"));
    worker.closed(1).await;
}

#[tokio::test]
async fn a_silent_stream_gets_comments_between_events_and_never_within_one() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::scripted(move |_, mut talk| {
        let mut turn = turn.clone();
        async move {
            talk.events().await;
            talk.chunk("data: 1\n\n").await;
            turn.wait_for(|turn| *turn).await.unwrap();
            talk.chunk("data: 2\n").await;
            talk.abandoned().await;
            Next::Close(talk)
        }
    })
    .await;
    let edge = Setting::sandbox(&worker)
        .with(|config| config.answers.comment = std::time::Duration::from_millis(20))
        .bounds(|bounds| bounds.idle = std::time::Duration::from_millis(400))
        .start()
        .await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap(), b"data: 1\n\n");
    assert_eq!(client.chunk().await.unwrap(), b": keep-alive\n\n");
    assert_eq!(client.chunk().await.unwrap(), b": keep-alive\n\n");
    go.send_replace(true);
    let rest = String::from_utf8(client.rest().await).unwrap();
    let (_, after) = rest.split_once("data: 2\n").expect("the half event");
    assert!(!after.contains("keep-alive"), "{rest}");
}

#[tokio::test]
async fn a_modern_client_that_leaves_cancels_the_call() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.abandoned().await;
        Next::Close(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    worker.arrivals(1).await;
    drop(client);
    worker.closed(1).await;
}

#[tokio::test]
async fn a_legacy_client_that_leaves_cancels_nothing_and_its_slot_counts_until_the_end() {
    for streaming in [false, true] {
        let (go, turn) = watch::channel(false);
        let worker = Worker::scripted(move |arrival, mut talk| {
            let mut turn = turn.clone();
            async move {
                if arrival.rpc_method() == "tools/call" {
                    if streaming {
                        talk.events().await;
                        talk.chunk("data: {}\n\n").await;
                    }
                    let gone = tokio::select! {
                        () = talk.abandoned() => true,
                        _ = turn.wait_for(|turn| *turn) => false,
                    };
                    assert!(!gone, "the worker was left in the middle of a call");
                    if streaming {
                        talk.last_chunk().await;
                        return Next::Keep(talk);
                    }
                }
                talk.reply(&arrival).await;
                Next::Keep(talk)
            }
        })
        .await;
        let edge = Setting::sandbox(&worker).with(|config| config.exchanges.most_per_tenant = 1).start().await;
        let session = edge.session().await;
        let mut client = edge.client().await;
        client.post(&[("Mcp-Session-Id", &session)], r#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#).await;
        worker.arrivals(2).await;
        if streaming {
            client.head().await;
        }
        drop(client);
        let busy = async || edge.ask(&[("Mcp-Session-Id", &session)], LIST).await;
        let refused = busy().await;
        assert_eq!((refused.status, refused.code()), (429, -31429), "the call is still under way");
        go.send_replace(true);
        within(async { while busy().await.status != 200 {} }).await;
    }
}

#[tokio::test]
async fn a_cancellation_ends_the_call_on_a_worker_without_sessions() {
    let worker = Worker::hanging().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.post(&[("Mcp-Session-Id", &session)], r#"{"jsonrpc":"2.0","id":"c","method":"tools/call"}"#).await;
    worker.arrivals(2).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#;
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], cancel).await.status, 202);
    let ended = client.answer().await;
    assert_eq!((ended.status, ended.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(ended.text(), "");
    worker.closed(1).await;
    assert_eq!(worker.count(), 2, "the notification was the edge's to carry out");
}

#[tokio::test]
async fn a_worker_with_sessions_gets_the_cancellation_itself() {
    let worker = Worker::sessionful().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#;
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], cancel).await.status, 202);
    assert_eq!(worker.arrivals(2).await[1].body, cancel.as_bytes());
}

#[tokio::test]
async fn a_slot_is_free_again_whatever_ended_the_exchange() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        match arrival.json()["id"].as_u64() {
            Some(0) => return Next::Close(talk),
            Some(1) => talk.send("HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n").await,
            Some(2) => {
                talk.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{").await
            }
            _ => talk.reply(&arrival).await,
        }
        if arrival.json()["id"] == 2 { Next::Close(talk) } else { Next::Keep(talk) }
    })
    .await;
    let edge = Setting::sandbox(&worker).with(|config| config.exchanges.most = 1).start().await;
    for round in 0..20 {
        let mut client = edge.client().await;
        client.post(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{}", round % 4))).await;
        let _ = client.rest_or_end().await;
        edge.ask(&[], "{").await;
        edge.ask(&[("Authorization", ABSENT)], INIT).await;
    }
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
}
