//! Public sessions: who may use one, how it ends, what it hides.

use playground::worker::endpoint::Endpoint;

use super::setting::{Edge, INIT, LIST, Setting, write_store};
use super::talk::Answer;
use super::worker::{Next, Worker};

async fn list(edge: &Edge, token: &str, session: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    edge.ask(&[("Authorization", &bearer), ("Mcp-Session-Id", session)], LIST).await
}

async fn end(edge: &Edge, token: &str, session: &str) -> u16 {
    let mut client = edge.client().await;
    let bearer = format!("Bearer {token}");
    client.request("DELETE", "/mcp", &[("Authorization", &bearer), ("Mcp-Session-Id", session)], None).await;
    client.answer().await.status
}

#[tokio::test]
async fn a_session_serves_its_tenant_and_is_forbidden_to_others() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let own = list(&edge, "tok-alice", &session).await;
    assert_eq!((own.status, own.text()), (200, r#"{"jsonrpc":"2.0","id":7,"result":{"of":"tools/list"}}"#));
    assert_eq!(own.header("mcp-session-id"), None, "the id stands on the answer to initialize alone");
    let foreign = list(&edge, "tok-bob", &session).await;
    assert_eq!((foreign.status, foreign.json()["id"].clone()), (403, 7.into()));
    assert_eq!(end(&edge, "tok-bob", &session).await, 403);
    assert_eq!(worker.count(), 2);
    let arrival = &worker.arrivals(2).await[1];
    assert_eq!(arrival.header("mcp-protocol-version"), Some("2025-06-18"), "the negotiated one is added");
}

#[tokio::test]
async fn no_session_is_not_an_unknown_session() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let _only = edge.session().await;
    for headers in [&[][..], &[("Mcp-Session-Id", "")]] {
        let answer = edge.ask(headers, LIST).await;
        assert_eq!((answer.status, answer.code()), (400, -32600));
    }
    for bogus in ["bogus-id", "UPSTREAM-SECRET", &"A".repeat(3000)] {
        let answer = list(&edge, "tok-alice", bogus).await;
        assert_eq!((answer.status, answer.code(), answer.json()["id"].clone()), (404, -32001, 7.into()), "{bogus}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(worker.count(), 1);
}

#[tokio::test]
async fn an_ended_session_is_over_at_once_and_stays_so_in_a_later_edge() {
    let worker = Worker::plain().await;
    let mut edge = Setting::sandbox(&worker).start().await;
    let (ended, kept) = (edge.session().await, edge.session().await);
    assert_eq!(end(&edge, "tok-alice", &ended).await, 204);
    assert_eq!(end(&edge, "tok-alice", &ended).await, 404);
    assert_eq!(list(&edge, "tok-alice", &ended).await.status, 404);
    edge.tell_to_stop();
    edge.drained().await;
    let later = Setting::sandbox(&worker).after(edge).start().await;
    assert_eq!(list(&later, "tok-alice", &ended).await.status, 404);
    assert_eq!(list(&later, "tok-alice", &kept).await.status, 200);
}

#[tokio::test]
async fn an_edge_with_another_key_knows_no_session() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    let other = Setting::sandbox(&worker).key(8).start().await;
    let answer = list(&other, "tok-alice", &session).await;
    assert_eq!((answer.status, answer.code()), (404, -32001));
    let same = Setting::sandbox(&worker).start().await;
    assert_eq!(list(&same, "tok-alice", &session).await.status, 200);
}

#[tokio::test]
async fn a_renewed_token_keeps_its_tenants_sessions() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let session = edge.session().await;
    write_store(&edge.store(), &[("tok-renewed", "alice")]);
    assert_eq!(list(&edge, "tok-alice", &session).await.status, 401);
    assert_eq!(list(&edge, "tok-renewed", &session).await.status, 200);
    assert_eq!(end(&edge, "tok-renewed", &session).await, 204);
}

#[tokio::test]
async fn the_workers_own_session_id_stays_inside() {
    let worker = Worker::sessionful().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let opened = edge.ask(&[], INIT).await;
        assert!(!opened.head.contains("UPSTREAM") && !opened.text().contains("UPSTREAM"));
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        assert!(session.len() >= 22 && seen.insert(session.clone()));
        let called = list(&edge, "tok-alice", &session).await;
        assert_eq!(called.status, 200);
        assert!(!called.head.contains("UPSTREAM"));
    }
    let arrivals = worker.arrivals(100).await;
    assert_eq!(arrivals[0].header("mcp-session-id"), None);
    assert_eq!(arrivals[1].header("mcp-session-id"), Some("UPSTREAM-SECRET"));
    assert_eq!(list(&edge, "tok-alice", "UPSTREAM-SECRET").await.status, 404);
}

#[tokio::test]
async fn ending_a_session_tells_a_worker_that_has_one_and_asks_nothing_of_it() {
    let worker = Worker::sessionful().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    assert_eq!(end(&edge, "tok-alice", &session).await, 204, "although the worker says 202");
    let arrivals = worker.arrivals(2).await;
    assert_eq!(
        (arrivals[1].method.as_str(), arrivals[1].header("mcp-session-id")),
        ("DELETE", Some("UPSTREAM-SECRET"))
    );
    assert_eq!(list(&edge, "tok-alice", &session).await.status, 404);
    assert_eq!(worker.count(), 2);
}

#[tokio::test]
async fn a_worker_that_forgot_the_session_ends_the_public_one() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "initialize" {
            talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
        } else {
            talk.send("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}").await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let first = list(&edge, "tok-alice", &session).await;
    assert_eq!((first.status, first.code(), first.json()["id"].clone()), (404, -32001, 7.into()));
    assert_eq!(list(&edge, "tok-alice", &session).await.status, 404);
    assert_eq!(worker.count(), 2, "the second call did not reach the worker");
    edge.session().await;
}

#[tokio::test]
async fn a_worker_that_says_so_with_400_ends_the_public_session_as_well_and_any_other_400_is_passed_on() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        let message = match arrival.rpc_method().as_str() {
            "initialize" => {
                talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
                return Next::Keep(talk);
            }
            "ping" => "Bad Request: Server not initialized",
            _ => "Bad Request: No valid session ID provided",
        };
        let body = format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32000,"message":"{message}"}},"id":null}}"#);
        let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ";
        talk.send(format!("{head}{}\r\n\r\n{body}", body.len())).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let within = [("Authorization", "Bearer tok-alice"), ("Mcp-Session-Id", session.as_str())];
    let other = edge.ask(&within, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).await;
    assert_eq!((other.status, other.code()), (400, -32000), "{}", other.text());
    assert!(other.text().ends_with(r#""Bad Request: Server not initialized"},"id":null}"#), "{}", other.text());
    let first = list(&edge, "tok-alice", &session).await;
    assert_eq!((first.status, first.code(), first.json()["id"].clone()), (404, -32001, 7.into()));
    assert_eq!(list(&edge, "tok-alice", &session).await.status, 404);
    assert_eq!(worker.count(), 3, "the last call did not reach the worker");
}

#[tokio::test]
async fn a_stream_of_the_session_is_served_where_the_worker_has_one() {
    let sessionless = Worker::plain().await;
    let edge = Setting::sandbox(&sessionless).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.request("GET", "/mcp", &[("Mcp-Session-Id", &session)], None).await;
    let refused = client.answer().await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, DELETE")));

    let sessionful = Worker::scripted(|arrival, mut talk| async move {
        if arrival.rpc_method() == "initialize" {
            talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
        } else {
            talk.events().await;
            talk.chunk("id: 7\ndata: {}\n\n").await;
            talk.abandoned().await;
        }
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &sessionful)]).start().await;
    let session = edge.session().await;
    let mut client = edge.client().await;
    client.request("GET", "/mcp", &[("Mcp-Session-Id", &session), ("Last-Event-ID", "6")], None).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap(), b"id: 7\ndata: {}\n\n");
    let arrival = &sessionful.arrivals(2).await[1];
    assert_eq!((arrival.method.as_str(), arrival.header("last-event-id")), ("GET", Some("6")));
    drop(client);
    sessionful.closed(1).await;
}

#[tokio::test]
async fn an_initialize_that_the_worker_refuses_opens_nothing() {
    let worker = Worker::scripted(|_, mut talk| async move {
        talk.json("Mcp-Session-Id: X\r\n", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let answer = edge.ask(&[], INIT).await;
    assert_eq!((answer.status, answer.code(), answer.header("mcp-session-id")), (200, -32602, None));
}

#[tokio::test]
async fn an_initialize_answered_as_a_stream_opens_a_session_too() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        talk.events().await;
        talk.chunk("id: 0\nretry: 3000\ndata:\n\n").await;
        talk.chunk(format!("data: {}\n", arrival.result())).await;
        talk.chunk("\n").await;
        talk.last_chunk().await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::sandbox(&worker).start().await;
    let answer = edge.ask(&[], INIT).await;
    assert!(answer.header("mcp-session-id").is_some());
    assert!(answer.text().starts_with("id: 0\nretry: 3000\ndata:\n\ndata: {"), "{}", answer.text());
}

#[tokio::test]
async fn a_native_tenant_without_a_worker_gets_an_error_and_never_another_worker() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let answer = edge.ask(&[("Authorization", "Bearer tok-bob")], INIT).await;
    assert_eq!((answer.status, answer.code(), answer.json()["id"].clone()), (503, -31503, 1.into()));
    assert_eq!(worker.count(), 0);
}

async fn initialize(edge: &Edge, token: &str) -> Answer {
    edge.ask(&[("Authorization", &format!("Bearer {token}"))], INIT).await
}

#[tokio::test]
async fn a_native_worker_is_not_asked_for_a_session_beyond_its_tenants_bound() {
    let (alices, bobs) = (Worker::sessionful().await, Worker::plain().await);
    let setting = Setting::native(&[("alice", &alices), ("bob", &bobs)]);
    let edge = setting.with(|config| config.sessions.most_per_tenant = 2).start().await;
    let (first, second) = (edge.session().await, edge.session().await);
    let refused = initialize(&edge, "tok-alice").await;
    assert_eq!((refused.status, refused.code(), refused.json()["id"].clone()), (503, -31503, 1.into()));
    assert!(refused.header("retry-after").is_some() && refused.text().contains("Nothing was sent"), "{refused:?}");
    assert_eq!(alices.count(), 2, "the worker was not asked");
    for session in [&first, &second] {
        assert_eq!(list(&edge, "tok-alice", session).await.status, 200, "none was pushed out");
    }
    edge.session_of("tok-bob").await;
    assert_eq!(end(&edge, "tok-alice", &first).await, 204);
    edge.session().await;
}

#[tokio::test]
async fn native_sessions_of_all_tenants_have_one_bound_too() {
    let (alices, bobs) = (Worker::sessionful().await, Worker::plain().await);
    let setting = Setting::native(&[("alice", &alices), ("bob", &bobs)]);
    let edge = setting.with(|config| config.sessions.most = 1).start().await;
    edge.session().await;
    let refused = initialize(&edge, "tok-bob").await;
    assert_eq!((refused.status, refused.header("retry-after").is_some(), bobs.count()), (503, true, 0));
}

#[tokio::test]
async fn an_initialize_that_opens_nothing_gives_its_place_back() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        match arrival.connection {
            1 => talk.send("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n").await,
            2 => return Next::Close(talk),
            _ => talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await,
        }
        Next::Close(talk)
    })
    .await;
    let setting = Setting::native(&[("alice", &worker)]);
    let edge = setting.with(|config| config.sessions.most_per_tenant = 1).start().await;
    for _ in 0..2 {
        assert_eq!(initialize(&edge, "tok-alice").await.status / 100, 5);
    }
    edge.session().await;
    assert_eq!(initialize(&edge, "tok-alice").await.status, 503);
    assert_eq!(worker.count(), 3);
}

#[tokio::test]
async fn a_sandboxes_idlest_session_makes_room_and_is_known_again() {
    let worker = Worker::plain().await;
    let setting = Setting::sandbox(&worker);
    let edge = setting.with(|config| config.sessions.most_per_tenant = 1).start().await;
    let (first, second) = (edge.session().await, edge.session().await);
    for session in [&first, &second, &first] {
        assert_eq!(list(&edge, "tok-alice", session).await.status, 200);
    }
}

#[tokio::test]
async fn a_native_worker_is_told_of_a_session_that_was_idle_for_too_long() {
    let worker = Worker::sessionful().await;
    let mut setting = Setting::native(&[("alice", &worker)]);
    setting.terms.path = Endpoint::parse("/mcp").unwrap();
    let idle = std::time::Duration::from_millis(50);
    let edge = setting.with(|config| config.sessions.idle = idle).start().await;
    let session = edge.session().await;
    let told = &worker.arrivals(2).await[1];
    assert_eq!((told.method.as_str(), told.header("mcp-session-id")), ("DELETE", Some("UPSTREAM-SECRET")));
    assert_eq!(told.header("mcp-protocol-version"), Some("2025-06-18"));
    assert!(told.head.starts_with("DELETE /mcp "), "{}", told.head);
    assert_eq!(list(&edge, "tok-alice", &session).await.status, 404);
}

#[tokio::test]
async fn two_edges_with_one_key_serve_each_others_sessions_in_turn() {
    let worker = Worker::sessionful().await;
    let edges = [Setting::native(&[("alice", &worker)]), Setting::native(&[("alice", &worker)])];
    let [first, second] = edges.map(|setting| setting.key(9).with(|config| config.rates.tenant_burst = 2000));
    let edges = [first.start().await, second.start().await];
    let mut clients = [edges[0].client().await, edges[1].client().await];
    let session = edges[0].session().await;
    for call in 0..1000 {
        let client = &mut clients[call % 2];
        client.post(&[("Mcp-Session-Id", &session)], LIST).await;
        assert_eq!(client.answer().await.status, 200, "call {call}");
    }
    assert_eq!(worker.count(), 1001);
}
