//! A worker that is known to lack an era, and the clients of that era.

use playground::worker::eras::{Found, Legacy};
use playground::worker::terms::Bridge;

use super::setting::{INIT, LIST, MODERN, MODERN_LIST, Setting};
use super::worker::Worker;

/// A worker of the era of sessions.
pub(super) fn sessions_alone() -> Found {
    Found { legacy: Some(Legacy { sessions: true, version: "2025-11-25".to_owned() }), modern: Vec::new() }
}

fn stateless_alone() -> Found {
    Found { legacy: None, modern: vec!["2026-07-28".to_owned()] }
}

#[tokio::test]
async fn a_modern_request_for_a_worker_of_sessions_is_refused_in_words_on_which_clients_fall_back() {
    let worker = Worker::sessionful().await;
    let edge = Setting::native(&[("alice", &worker)]).found(sessions_alone()).start().await;
    let discover = MODERN_LIST.replace("tools/list", "server/discover");
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    for (headers, body) in [(MODERN, MODERN_LIST), (&headers, discover.as_str())] {
        let answer = edge.ask(headers, body).await;
        assert_eq!((answer.status, answer.code(), answer.json()["id"].as_u64()), (400, -32600, Some(7)));
        assert_eq!(answer.json()["error"].get("data"), None, "a client that knows -32022 would not fall back");
        for said in ["`initialize`", "2025-11-25", "2025-06-18", "2025-03-26", "Nothing was sent"] {
            assert!(answer.message().contains(said), "{answer:?}");
        }
    }
    assert_eq!(worker.count(), 0, "nothing was sent");
    let session = edge.session().await;
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], LIST).await.status, 200, "the way that it names is open");
}

#[tokio::test]
async fn initialize_for_a_worker_without_sessions_is_refused_with_the_revision_that_it_has() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).found(stateless_alone()).start().await;
    let answer = edge.ask(&[], INIT).await;
    assert_eq!((answer.status, answer.code(), answer.json()["id"].as_u64()), (400, -32022, Some(1)));
    let data = serde_json::json!({ "supported": ["2026-07-28"], "requested": "2025-06-18" });
    assert_eq!(answer.json()["error"]["data"], data);
    assert!(answer.message().contains("2026-07-28") && answer.message().contains("Nothing was sent"), "{answer:?}");
    assert_eq!(worker.count(), 0, "nothing was sent");
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
}

#[tokio::test]
async fn a_worker_that_nothing_is_known_of_gets_each_message_in_its_own_era_until_it_is_known() {
    let worker = Worker::sessionful().await;
    let setting = Setting::native(&[("alice", &worker)]);
    let eras = setting.eras.clone();
    let edge = setting.start().await;
    let session = edge.session().await;
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
    assert_eq!(worker.arrivals(2).await[1].header("mcp-protocol-version"), Some("2026-07-28"));
    eras.learn(sessions_alone());
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 400);
    eras.learn(Found { modern: vec!["2026-07-28".to_owned()], ..sessions_alone() });
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200, "a worker of both eras");
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], LIST).await.status, 200);
    eras.learn(stateless_alone());
    assert_eq!(edge.ask(&[("Mcp-Session-Id", &session)], LIST).await.code(), -32022);
}

#[tokio::test]
async fn where_a_bridge_is_wanted_a_modern_request_is_not_sent_before_the_workers_eras_are_known() {
    let worker = Worker::sessionful().await;
    let mut setting = Setting::native(&[("alice", &worker)]);
    setting.terms.bridge = Bridge::Modern;
    let eras = setting.eras.clone();
    let edge = setting.start().await;
    let refused = edge.ask(MODERN, MODERN_LIST).await;
    assert_eq!((refused.status, refused.code(), refused.header("retry-after")), (503, -31503, Some("2")));
    assert_eq!(worker.count(), 0, "nothing was sent");
    edge.session().await;
    eras.learn(sessions_alone());
    assert_eq!(edge.ask(MODERN, MODERN_LIST).await.status, 200);
}
