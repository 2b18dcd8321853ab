//! The session of the three revisions that have one.

use serde_json::json;

use super::super::setting::{LIST, Setting};
use super::super::talk::{ABSENT, header, status};
use super::super::worker::{Next, Worker};
use super::{REVISIONS, Session, error_of, initialize, streaming};

const METHODS: [(&str, Option<&str>); 3] = [("POST", Some(LIST)), ("GET", None), ("DELETE", None)];

#[tokio::test]
async fn each_revision_has_one_path_for_messages_the_stream_and_the_end() {
    for revision in REVISIONS {
        let worker = streaming().await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = Session::open(&edge, revision).await;
        assert!(session.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{revision}: {}", session.id);
        let called = session.post(LIST).await;
        assert_eq!((called.status, called.header("content-type")), (200, Some("application/json")), "{revision}");
        assert_eq!(called.header("mcp-session-id"), None, "the id stands on the answer to initialize alone");
        let mut stream = session.send("GET", &[("Accept", "text/event-stream")], None).await;
        let head = stream.head().await;
        assert_eq!((status(&head), header(&head, "content-type")), (200, Some("text/event-stream")), "{revision}");
        assert_eq!(stream.chunk().await.as_deref(), Some(&b"data: {}\n\n"[..]));
        drop(stream);
        assert_eq!(session.ask("DELETE", &[], None).await.status, 204, "{revision}");
    }
}

#[tokio::test]
async fn a_worker_without_sessions_has_no_stream_of_theirs_in_any_revision() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        let refused = session.ask("GET", &[("Accept", "text/event-stream")], None).await;
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, DELETE")), "{revision}");
    }
}

#[tokio::test]
async fn a_session_that_is_missing_is_400_and_one_that_is_over_is_404_to_every_method() {
    for revision in REVISIONS {
        let worker = streaming().await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = Session::open(&edge, revision).await;
        for (method, body) in METHODS {
            let mut client = edge.client().await;
            client.request(method, "/mcp", &[("MCP-Protocol-Version", revision)], body).await;
            let id = if body.is_some() { json!(7) } else { json!(null) };
            assert_eq!(error_of(&client.answer().await), (400, -32600, id), "{method} {revision}");
        }
        assert_eq!(worker.count(), 1);
        assert_eq!(session.ask("DELETE", &[], None).await.status, 204);
        let told = worker.arrivals(2).await.len();
        for (method, body) in METHODS {
            let id = if body.is_some() { json!(7) } else { json!(null) };
            assert_eq!(error_of(&session.ask(method, &[], body).await), (404, -32001, id), "{method} {revision}");
        }
        assert_eq!(worker.count(), told, "the worker hears nothing of a session that is over");
        let again = Session::open(&edge, revision).await;
        assert_eq!(again.post(LIST).await.status, 200, "{revision}: what a client does on 404 works");
    }
}

#[tokio::test]
async fn an_unknown_revision_is_refused_and_an_absent_one_is_the_negotiated() {
    for revision in REVISIONS {
        let worker = streaming().await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = Session::open(&edge, revision).await;
        for unknown in ["1999-01-01", "2024-11-05", "nonsense", ""] {
            for (method, body) in METHODS {
                let headers = [("Mcp-Session-Id", session.id.as_str()), ("MCP-Protocol-Version", unknown)];
                let mut client = edge.client().await;
                client.request(method, "/mcp", &headers, body).await;
                assert_eq!(client.answer().await.status, 400, "{method} {unknown}");
            }
        }
        assert_eq!(worker.count(), 1, "none of it was sent");
        assert_eq!(edge.ask(&[("Mcp-Session-Id", &session.id)], LIST).await.status, 200);
        assert_eq!(worker.arrivals(2).await[1].header("mcp-protocol-version"), Some(revision));
    }
}

#[tokio::test]
async fn a_session_is_nothing_without_a_credential_of_its_tenant() {
    for revision in REVISIONS {
        let worker = streaming().await;
        let edge = Setting::native(&[("alice", &worker), ("bob", &worker)]).start().await;
        let session = Session::open(&edge, revision).await;
        for (method, body) in METHODS {
            for (bearer, status) in [(ABSENT, 401), ("Bearer of-nobody", 401), ("Bearer tok-bob", 403)] {
                let refused = session.ask(method, &[("Authorization", bearer)], body).await;
                assert_eq!(refused.status, status, "{method} {bearer} {revision}");
            }
        }
        assert_eq!(worker.count(), 1);
        assert_eq!(session.post(LIST).await.status, 200, "and it is still alice's");
    }
}

#[tokio::test]
async fn a_worker_is_spoken_to_in_the_negotiated_revision_whatever_another_header_says() {
    let worker = streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    for (round, revision) in REVISIONS.into_iter().enumerate() {
        let session = Session::open(&edge, revision).await;
        for sent in REVISIONS {
            let headers = [("Mcp-Session-Id", session.id.as_str()), ("MCP-Protocol-Version", sent)];
            assert_eq!(edge.ask(&headers, LIST).await.status, 200, "{sent} within {revision}");
        }
        for arrival in &worker.arrivals((round + 1) * 4).await[round * 4 + 1..] {
            assert_eq!(arrival.header("mcp-protocol-version"), Some(revision));
        }
    }
}

#[tokio::test]
async fn what_the_worker_agrees_on_is_what_is_negotiated() {
    for agreed in REVISIONS {
        let worker = Worker::scripted(move |arrival, mut talk| async move {
            let result = format!(r#"{{"protocolVersion":"{agreed}","capabilities":{{}}}}"#);
            match arrival.rpc_method().as_str() {
                "initialize" => talk.json("", &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).await,
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        })
        .await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        for asked in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1900-01-01"] {
            let before = worker.count();
            let opened = edge.ask(&[], &initialize(asked)).await;
            assert_eq!(opened.json()["result"]["protocolVersion"], agreed, "{asked}: {opened:?}");
            let session = opened.header("mcp-session-id").unwrap();
            assert_eq!(edge.ask(&[("Mcp-Session-Id", session)], LIST).await.status, 200);
            assert_eq!(worker.arrivals(before + 2).await[before + 1].header("mcp-protocol-version"), Some(agreed));
        }
    }
}

#[tokio::test]
async fn an_initialize_with_a_session_or_a_version_beside_it_opens_a_new_session() {
    let worker = streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        let again = edge.ask(&session.headers(), &initialize(revision)).await;
        assert_eq!(again.status, 200, "{revision}: {again:?}");
        assert_ne!(again.header("mcp-session-id"), Some(session.id.as_str()));
    }
    for arrival in worker.arrivals(6).await {
        assert_eq!(arrival.header("mcp-session-id"), None, "a session is never opened within another");
    }
}
