//! Which revisions are served, and what those hear that ask for another.

use super::setting::{INIT, Setting};
use super::worker::{Next, Worker};

const HEADERS: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const OFFERED: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"supportedVersions":["2024-11-05", "2025-11-25", "2026-07-28"],"ttlMs":0,"cacheScope":"public","n":1.0e2}}"#;
const CUT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"supportedVersions":["2025-11-25","2026-07-28"],"ttlMs":0,"cacheScope":"public","n":1.0e2}}"#;

/// Answers everything with this text.
async fn saying(text: String) -> Worker {
    Worker::scripted(move |_, mut talk| {
        let text = text.clone();
        async move {
            talk.json("", &text).await;
            Next::Keep(talk)
        }
    })
    .await
}

#[tokio::test]
async fn discovery_offers_what_the_edge_carries_and_a_tenants_own_worker_is_not_cached_for_others() {
    let worker = saying(OFFERED.to_owned()).await;
    let edge = Setting::sandbox(&worker).start().await;
    let answer = edge.ask(HEADERS, DISCOVER).await;
    assert_eq!((answer.status, answer.text()), (200, CUT));
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    assert_eq!(edge.ask(HEADERS, DISCOVER).await.text(), CUT.replace("public", "private"));
    let mut shared = Setting::native(&[("alice", &worker)]);
    shared.terms.shared_catalogue = true;
    assert_eq!(shared.start().await.ask(HEADERS, DISCOVER).await.text(), CUT, "its operator says so");
    // What is the same words in another answer is none of the edge's business.
    let list = DISCOVER.replace("server/discover", "tools/list");
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    assert_eq!(edge.ask(&headers, &list).await.text(), OFFERED);
}

#[tokio::test]
async fn a_discovery_that_comes_as_a_stream_is_changed_in_its_event_alone() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.events().await;
        talk.chunk("id: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\nid: 1\nda").await;
        talk.chunk(format!("ta: {OFFERED}\n\n: more\n\n")).await;
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let answer = edge.ask(HEADERS, DISCOVER).await;
    let before = "id: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\nid: 1\n";
    // What is said behind an answer goes to nobody.
    assert_eq!(answer.text(), format!("{before}data: {CUT}\n\n"));
}

#[tokio::test]
async fn a_discovery_as_long_as_what_is_read_ahead_passes_and_a_longer_one_does_not() {
    for (spare, status) in [(0, 200), (1, 502)] {
        let worker = saying(OFFERED.to_owned()).await;
        let most = OFFERED.len() - spare;
        let edge = Setting::sandbox(&worker).with(|config| config.answers.most_buffered_bytes = most).start().await;
        assert_eq!(edge.ask(HEADERS, DISCOVER).await.status, status);
    }
}

#[tokio::test]
async fn a_revision_from_before_ours_is_settled_by_our_worker_and_refused_for_another() {
    let old = INIT.replace("2025-06-18", "2024-11-05");
    let worker = saying(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#.to_owned()).await;
    let edge = Setting::sandbox(&worker).start().await;
    let answer = edge.ask(&[], &old).await;
    assert_eq!((answer.status, answer.header("mcp-session-id").is_some()), (200, true), "{answer:?}");
    let agreeing = Worker::plain().await;
    let edge = Setting::native(&[("alice", &agreeing)]).start().await;
    for retired in ["2024-11-05", "2024-10-07"] {
        let answer = edge.ask(&[], &INIT.replace("2025-06-18", retired)).await;
        assert_eq!((answer.status, answer.code(), answer.json()["id"].as_u64()), (400, -32602, Some(1)));
        assert_eq!(answer.json()["error"]["data"]["requested"], retired);
        for version in ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] {
            assert!(answer.message().contains(version), "{answer:?}");
        }
    }
    assert_eq!(agreeing.count(), 0, "nothing was sent");
    assert_eq!(edge.ask(&[], INIT).await.status, 200);
}

#[tokio::test]
async fn a_stateless_request_of_a_revision_with_sessions_is_told_of_the_stateless_ones() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let headers = |version| [("mcp-protocol-version", version), ("mcp-method", "server/discover")];
    for (asked, supported) in [
        ("2025-11-25", serde_json::json!(["2026-07-28"])),
        ("2027-01-01", serde_json::json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])),
    ] {
        let answer = edge.ask(&headers(asked), &DISCOVER.replace("2026-07-28", asked)).await;
        assert_eq!((answer.status, answer.code()), (400, -32022));
        assert_eq!(answer.json()["error"]["data"]["supported"], supported);
        assert!(answer.message().contains("2025-03-26"), "{answer:?}");
    }
    assert_eq!(worker.count(), 0);
}
