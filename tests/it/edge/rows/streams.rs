//! Event streams: whose a message is, and what a broken one can be resumed with.

use tokio::sync::watch;

use super::super::setting::{LIST, MODERN, MODERN_LIST, Setting};
use super::super::talk::header;
use super::super::worker::Next;
use super::{REVISIONS, Session};

/// Everything on a stream until its end.
async fn all(client: &mut super::Client) -> String {
    let mut text = Vec::new();
    while let Some(chunk) = client.chunk().await {
        text.extend_from_slice(&chunk);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn an_answer_comes_in_the_form_that_the_worker_gave_it_and_its_stream_ends_with_it() {
    const PRIMED: &str = "id: s/0\nretry: 3000\ndata:\n\n";
    const TOLD: &str = "id: s/1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":1}}\n\n";
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"x":1.0e2}}"#;
    let worker = super::worker(|arrival, mut talk| async move {
        if arrival.json()["params"]["arguments"]["stream"] == true {
            talk.events().await;
            talk.chunk(format!("{PRIMED}{TOLD}data: {ANSWER}\n\n")).await;
            talk.last_chunk().await;
        } else {
            talk.json("", ANSWER).await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let call = |stream: bool| {
        super::stateless("7", "tools/call", &format!(r#""name":"t","arguments":{{"stream":{stream}}},"#))
    };
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        // A legacy request has no envelope.
        let plain = |stream: bool| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"stream":{stream}}}}}}}"#
            )
        };
        let json = session.post(&plain(false)).await;
        assert_eq!((json.header("content-type"), json.text()), (Some("application/json"), ANSWER), "{revision}");
        let mut stream = session.send("POST", &[], Some(&plain(true))).await;
        assert_eq!(header(&stream.head().await, "content-type"), Some("text/event-stream"), "{revision}");
        assert_eq!(all(&mut stream).await, format!("{PRIMED}{TOLD}data: {ANSWER}\n\n"), "{revision}");
    }
    let headers = super::repeated("tools/call", "t");
    assert_eq!(edge.ask(&headers, &call(false)).await.text(), ANSWER);
    let mut stream = edge.client().await;
    stream.post(&headers, &call(true)).await;
    let head = stream.head().await;
    assert_eq!((header(&head, "x-accel-buffering"), header(&head, "mcp-session-id")), (Some("no"), None));
    assert_eq!(all(&mut stream).await, format!("{PRIMED}{TOLD}data: {ANSWER}\n\n"));
}

#[tokio::test]
async fn each_message_stays_on_the_stream_that_the_worker_chose() {
    for revision in REVISIONS {
        let (go, turn) = watch::channel(false);
        let worker = super::worker(move |arrival, mut talk| {
            let mut turn = turn.clone();
            async move {
                let streams = arrival.method == "GET" || arrival.rpc_method() == "tools/call";
                if !streams {
                    talk.reply(&arrival).await;
                    return Next::Keep(talk);
                }
                // Each stream says what it was asked by, so that one message on two streams would be seen.
                let own =
                    arrival.header("last-event-id").map_or_else(|| arrival.json()["id"].to_string(), str::to_owned);
                talk.events().await;
                talk.chunk(format!("id: {own}\ndata: {{\"own\":\"{own}\"}}\n\n")).await;
                turn.wait_for(|turn| *turn).await.unwrap();
                talk.chunk(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"ask-{own}\",\"method\":\"ping\"}}\n\n")).await;
                talk.last_chunk().await;
                Next::Keep(talk)
            }
        })
        .await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = Session::open(&edge, revision).await;
        let mut streams = Vec::new();
        for own in ["g1", "g2"] {
            streams.push((own, session.send("GET", &[("Last-Event-ID", own)], None).await));
        }
        for own in ["1", "2"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{own},"method":"tools/call","params":{{"name":"t"}}}}"#);
            streams.push((own, session.send("POST", &[], Some(&body)).await));
        }
        worker.arrivals(5).await;
        go.send_replace(true);
        for (own, stream) in &mut streams {
            stream.head().await;
            let wanted = format!(
                "id: {own}\ndata: {{\"own\":\"{own}\"}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"ask-{own}\",\"method\":\"ping\"}}\n\n"
            );
            assert_eq!(all(stream).await, wanted, "{revision}");
            let pong = format!(r#"{{"jsonrpc":"2.0","id":"ask-{own}","result":{{}}}}"#);
            assert_eq!(session.post(&pong).await.status, 202, "{revision}");
        }
        let arrivals = worker.arrivals(9).await;
        assert_eq!(arrivals.len(), 9, "each answer of the client's arrives once");
        assert!(arrivals[5..].iter().all(|arrival| arrival.header("mcp-session-id") == Some("U1")));
    }
}

#[tokio::test]
async fn an_event_id_is_taken_up_within_its_own_session_alone() {
    for revision in REVISIONS {
        let worker = super::worker(|arrival, mut talk| async move {
            talk.events().await;
            talk.chunk(format!("data: {{\"of\":\"{}\"}}\n\n", arrival.header("mcp-session-id").unwrap())).await;
            talk.last_chunk().await;
            Next::Keep(talk)
        })
        .await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let (first, second) = (Session::open(&edge, revision).await, Session::open(&edge, revision).await);
        for (session, theirs) in [(&first, "U1"), (&second, "U2")] {
            let mut stream = session.send("GET", &[("Last-Event-ID", "s/1:5 \u{7e}")], None).await;
            stream.head().await;
            assert_eq!(all(&mut stream).await, format!("data: {{\"of\":\"{theirs}\"}}\n\n"), "{revision}");
        }
        for arrival in &worker.arrivals(4).await[2..] {
            assert_eq!(arrival.header("last-event-id"), Some("s/1:5 \u{7e}"), "as the client has it");
            assert_eq!(arrival.header("mcp-protocol-version"), Some(revision));
        }
        // A POST resumes nothing.
        let mut called = first.send("POST", &[("Last-Event-ID", "s/1")], Some(LIST)).await;
        called.head().await;
        assert_eq!(worker.arrivals(5).await[4].header("last-event-id"), None, "{revision}");
    }
}

#[tokio::test]
async fn a_stateless_request_resumes_nothing_and_knows_no_session() {
    let worker = super::streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = Session::open(&edge, "2025-11-25").await;
    let more = [("Mcp-Session-Id", session.id.as_str()), ("Last-Event-ID", "1")];
    let answer = edge.ask(&[MODERN, &more].concat(), MODERN_LIST).await;
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
    let arrival = &worker.arrivals(2).await[1];
    assert_eq!((arrival.header("mcp-session-id"), arrival.header("last-event-id")), (None, None));
    for method in ["GET", "DELETE"] {
        let mut client = edge.client().await;
        client.request(method, "/mcp", &[&MODERN[..1], &more].concat(), None).await;
        let refused = client.answer().await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")), "{method}");
    }
    assert_eq!(session.post(LIST).await.status, 200, "the session is still there");
}
