//! Bodies that are declared and then stay away: what they hold, and whom that keeps out.

use super::setting::{Edge, INIT, Setting, within};
use super::talk::{Client, status};
use super::worker::Worker;

#[tokio::test]
async fn one_tenants_half_sent_bodies_keep_no_other_tenant_out() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut held = Vec::new();
    for _ in 0..32 {
        let mut client = edge.client().await;
        match promise(&mut client).await {
            100 => held.push(client),
            refused => assert_eq!(refused, 429),
        }
    }
    for client in &mut held {
        client.send("{").await;
    }
    let bob = edge.ask(&[("Authorization", "Bearer tok-bob")], INIT).await;
    assert_eq!(bob.status, 200, "{bob:?}");
    // A quarter of 256 MiB.
    assert_eq!(held.len(), 8);
    assert_eq!(refusal(&edge).await, -31429);
}

#[tokio::test]
async fn what_half_sent_bodies_hold_is_given_back_when_their_connections_close() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut client = edge.client().await;
        assert_eq!(promise(&mut client).await, 100);
        client.send("{").await;
        held.push(client);
    }
    assert_eq!(refusal(&edge).await, -31429);
    drop(held);
    let again = async { while promise(&mut edge.client().await).await != 100 {} };
    within(again).await;
}

/// Declares a whole body of alice's and gives the status that comes before any of it is sent.
async fn promise(client: &mut Client) -> u16 {
    client.post(&[("Content-Length", WHOLE_BODY), ("Expect", "100-continue")], "").await;
    status(&client.head().await)
}

async fn refusal(edge: &Edge) -> i64 {
    let mut client = edge.client().await;
    client.post(&[("Content-Length", WHOLE_BODY), ("Expect", "100-continue")], "").await;
    client.answer().await.code()
}

/// The largest that is served: 8 MiB.
const WHOLE_BODY: &str = "8388608";
