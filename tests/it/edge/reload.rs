//! Another configuration while the edge serves: what goes on, and what is another.

use super::setting::{INIT, LIST, Setting, within};
use super::worker::Worker;
use tokio::sync::watch;

#[tokio::test]
async fn sessions_and_exchanges_under_way_outlive_a_reload_and_the_next_request_sees_it() {
    let (go, turn) = watch::channel(false);
    let worker = Worker::calls_later(turn).await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let named = [("Mcp-Session-Id", session.as_str())];
    let mut slow = edge.client().await;
    slow.post(&named, r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x"}}"#).await;
    worker.arrivals(2).await;
    let mut kept = edge.client().await;
    kept.post(&named, LIST).await;
    assert_eq!(kept.answer().await.status, 200);

    edge.take_up(
        Setting::native(&[("alice", &worker), ("bob", &worker)]).with(|config| config.requests.most_body_bytes = 200),
    )
    .await;
    kept.post(&named, LIST).await;
    assert_eq!(kept.answer().await.status, 200, "on the same connection, in the same session");
    kept.post(&named, &format!("{LIST}{}", " ".repeat(200 - LIST.len() + 1))).await;
    assert_eq!(kept.answer().await.status, 413, "under the new bound");
    let bobs = edge.ask(&[("authorization", "Bearer tok-bob")], INIT).await;
    assert_eq!(bobs.status, 200, "a tenant that was added");
    go.send_replace(true);
    assert_eq!(within(slow.answer()).await.status, 200, "what was under way has its answer");

    edge.take_up(Setting::native(&[("bob", &worker)])).await;
    assert_eq!(edge.ask(&named, LIST).await.status, 503, "a tenant that was removed has no worker");
}
