//! Sessions as their operator sees them, and ends them.

use std::time::Duration;

use playground::edge::{NotEnded, SessionName};
use playground::identity::Catalogue;

use super::setting::{Edge, LIST, Setting, within, write_store};
use super::worker::{Next, Worker};

async fn list(edge: &Edge, token: &str, session: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    edge.ask(&[("Authorization", &bearer), ("Mcp-Session-Id", session)], LIST).await.status
}

#[tokio::test]
async fn each_live_session_is_listed_with_who_uses_it_and_never_by_the_id_that_opens_it() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    assert_eq!(edge.live().await, []);
    let (one, _other) = (edge.session().await, edge.session().await);
    let bobs = edge.session_of("tok-bob").await;
    let live = edge.live().await;
    let tenants: Vec<_> = live.iter().map(|session| session.tenant.as_str()).collect();
    assert_eq!(tenants, ["alice", "alice", "bob"]);
    for session in &live {
        assert_eq!((session.catalogue, session.worker.as_str()), (Catalogue::Sandbox, "sandbox"));
        assert_eq!((session.address.as_str(), session.stated.as_deref()), ("127.0.0.1", Some("t 1")));
        assert!(session.expires > session.opened && session.idle < Duration::from_secs(60));
        assert_eq!(SessionName::parse(&session.name.to_string()), Ok(session.name));
        for id in [&one, &bobs] {
            assert!(!id.contains(&session.name.to_string()) && !format!("{session:?}").contains(id.as_str()));
        }
        assert_eq!(list(&edge, "tok-alice", &session.name.to_string()).await, 404, "the name opens nothing");
    }
    // Another token of the tenant's goes on with it.
    write_store(&edge.store(), &[("tok-renewed", "alice"), ("tok-bob", "bob")]);
    assert_eq!(list(&edge, "tok-renewed", &one).await, 200);
    let renewed = edge.live().await;
    let before = |name: SessionName| live.iter().find(|session| session.name == name).expect("it is the same").clone();
    let changed: Vec<_> =
        renewed.iter().filter(|session| session.credential != before(session.name).credential).collect();
    assert_eq!(changed.len(), 1, "{renewed:?}");
    assert_eq!(changed[0].stated.as_deref(), Some("t 1"), "what was said at the opening");
}

#[tokio::test]
async fn an_ended_session_is_gone_for_its_client_now_and_in_a_later_edge_and_no_other_is() {
    let worker = Worker::hanging().await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let ended = edge.session().await;
    let name = edge.live().await[0].name;
    let (kept, bobs) = (edge.session().await, edge.session_of("tok-bob").await);
    let mut call = edge.client().await;
    call.post(&[("Mcp-Session-Id", &ended)], &LIST.replace("tools/list", "tools/call")).await;
    worker.arrivals(4).await;
    assert_eq!(edge.end(name).await.map(|session| session.tenant.to_string()), Ok("alice".to_owned()));
    worker.closed(1).await;
    let cut = call.answer().await;
    assert_eq!((cut.status, cut.body.len()), (200, 0), "its call is cancelled: {cut:?}");
    for _ in 0..2 {
        assert_eq!(list(&edge, "tok-alice", &ended).await, 404);
        assert_eq!(edge.end(name).await, Err(NotEnded::Unknown));
    }
    assert_eq!((list(&edge, "tok-alice", &kept).await, list(&edge, "tok-bob", &bobs).await), (200, 200));
    assert_eq!(edge.live().await.len(), 2);
    edge.tell_to_stop();
    edge.drained().await;
    let later = Setting::sandbox(&worker).after(edge).start().await;
    assert_eq!((list(&later, "tok-alice", &ended).await, list(&later, "tok-alice", &kept).await), (404, 200));
    assert_eq!(later.live().await.len(), 1, "what has come back is known again");
}

#[tokio::test]
async fn a_native_sessions_stream_ends_with_it_and_its_worker_is_told_by_its_own_id() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        match (arrival.method.as_str(), arrival.rpc_method().as_str()) {
            (_, "initialize") => talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await,
            ("GET", _) => {
                talk.events().await;
                talk.chunk("data: {}\n\n").await;
                talk.abandoned().await;
                return Next::Close(talk);
            }
            _ => talk.reply(&arrival).await,
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker), ("bob", &worker)]).start().await;
    let alices = edge.session().await;
    let bobs = edge.session_of("tok-bob").await;
    let mut streams = Vec::new();
    for (token, session) in [("Bearer tok-alice", &alices), ("Bearer tok-bob", &bobs)] {
        let mut stream = edge.client().await;
        stream.request("GET", "/mcp", &[("Authorization", token), ("Mcp-Session-Id", session)], None).await;
        stream.head().await;
        stream.chunk().await.unwrap();
        streams.push(stream);
    }
    let live = edge.live().await;
    assert_eq!((live.len(), live[0].tenant.as_str(), live[0].catalogue), (2, "alice", Catalogue::Native));
    edge.end(live[0].name).await.unwrap();
    assert_eq!(streams[0].chunk().await, None, "it ends well");
    let told = worker.arrivals(5).await;
    assert_eq!((told[4].method.as_str(), told[4].header("mcp-session-id")), ("DELETE", Some("UPSTREAM-SECRET")));
    assert_eq!(list(&edge, "tok-alice", &alices).await, 404);
    assert_eq!(list(&edge, "tok-bob", &bobs).await, 200);
    let silent = tokio::time::timeout(Duration::from_millis(50), streams[1].chunk()).await;
    assert!(silent.is_err(), "bob's goes on");
    // Its place is free again.
    within(edge.session()).await;
}
