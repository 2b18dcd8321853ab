//! Sessions that are over, unknown or another's, by every method that can name one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::edge::setting::{Edge, INIT, LIST, Setting};
use crate::edge::talk::{ABSENT, Answer};
use crate::edge::worker::{Next, Worker};

pub(super) const VERBS: [&str; 3] = ["POST", "GET", "DELETE"];

/// One request of alice's by this method; a POST lists the tools.
pub(super) async fn by(edge: &Edge, verb: &str, headers: &[(&str, &str)]) -> Answer {
    let mut client = edge.client().await;
    client.request(verb, "/mcp", headers, (verb == "POST").then_some(LIST)).await;
    client.answer().await
}

async fn named(edge: &Edge, verb: &str, session: &str) -> Answer {
    by(edge, verb, &[("Mcp-Session-Id", session)]).await
}

fn assert_unknown(answer: &Answer, verb: &str) {
    assert_eq!((answer.status, answer.code()), (404, -32001), "{verb}: {answer:?}");
    assert!(answer.message().contains("initialize again"), "{verb}: {answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let id = if verb == "POST" { 7.into() } else { serde_json::Value::Null };
    assert_eq!(answer.json()["id"], id, "{verb}");
}

/// A worker that knows its sessions until it is told to forget them.
async fn forgetful() -> (Worker, Arc<AtomicBool>) {
    let forgets = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&forgets);
    let worker = Worker::scripted(move |arrival, mut talk| {
        let forgets = told.load(Ordering::Relaxed);
        async move {
            match (arrival.method.as_str(), arrival.rpc_method().as_str()) {
                (_, "initialize") => talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await,
                _ if forgets => talk.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await,
                ("GET", _) => {
                    talk.events().await;
                    talk.chunk("data: {}\n\n").await;
                    talk.last_chunk().await;
                }
                _ => talk.reply(&arrival).await,
            }
            Next::Keep(talk)
        }
    })
    .await;
    (worker, forgets)
}

#[tokio::test]
async fn after_a_restart_with_nothing_kept_every_method_is_told_to_initialize_and_that_works() {
    let (worker, _) = forgetful().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let old = edge.session().await;
    assert_eq!(named(&edge, "POST", &old).await.status, 200, "it was a good one");
    drop(edge);
    let edge = Setting::native(&[("alice", &worker)]).key(8).start().await;
    for verb in VERBS {
        assert_unknown(&named(&edge, verb, &old).await, verb);
    }
    assert_eq!(worker.count(), 2, "nothing of it came to the worker");
    let fresh = edge.session().await;
    assert_eq!(named(&edge, "POST", &fresh).await.status, 200);
}

#[tokio::test]
async fn after_the_worker_forgot_whichever_method_meets_it_first_ends_the_session_for_all() {
    for first in VERBS {
        let (worker, forgets) = forgetful().await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = edge.session().await;
        for _ in 0..5 {
            assert_eq!(named(&edge, "POST", &session).await.status, 200);
        }
        forgets.store(true, Ordering::Relaxed);
        let met = named(&edge, first, &session).await;
        if first == "DELETE" {
            assert_eq!(met.status, 204, "the session is over, as was asked");
        } else {
            assert_unknown(&met, first);
        }
        for verb in VERBS {
            assert_unknown(&named(&edge, verb, &session).await, verb);
        }
        assert_eq!(worker.count(), 7, "{first}: only the first came to the worker");
        forgets.store(false, Ordering::Relaxed);
        let fresh = edge.session().await;
        assert_eq!(named(&edge, "POST", &fresh).await.status, 200);
    }
}

#[tokio::test]
async fn missing_unknown_foreign_and_expired_sessions_tell_themselves_apart_by_every_method() {
    let (worker, _) = forgetful().await;
    let native = || Setting::native(&[("alice", &worker), ("bob", &worker)]);
    let (edge, brief) = (native().start().await, native().with(|config| config.sessions.lifetime = Duration::ZERO));
    let brief = brief.start().await;
    let (own, bobs) = (edge.session().await, edge.session_of("tok-bob").await);
    let expired = brief.session().await;
    let changed = format!("{}{}", &own[..own.len() - 1], if own.ends_with('A') { 'B' } else { 'A' });
    let long = "A".repeat(3000);
    for verb in ["POST", "GET"] {
        assert_eq!(named(&edge, verb, &own).await.status, 200, "its owner's {verb} works");
    }
    let before = worker.count();
    for verb in VERBS {
        for (what, session, status) in [
            ("none", ABSENT, 400),
            ("empty", "", 400),
            ("garbage", "bogus-id", 404),
            ("the worker's own", "UPSTREAM-SECRET", 404),
            ("too long", long.as_str(), 404),
            ("changed", &changed, 404),
            ("expired", &expired, 404),
            ("another tenant's", &bobs, 403),
        ] {
            let answer = named(&edge, verb, session).await;
            assert_eq!(answer.status, status, "{verb}, {what}: {answer:?}");
            assert_eq!(answer.code(), if status == 404 { -32001 } else { -32600 }, "{verb}, {what}");
        }
        let twice = by(&edge, verb, &[("Mcp-Session-Id", &own), ("Mcp-Session-Id", &own)]).await;
        assert_eq!(twice.status, 400, "{verb}, twice");
    }
    assert_eq!(worker.count(), before, "nothing of it came to the worker");
    for verb in ["POST", "GET"] {
        assert_eq!(named(&edge, verb, &own).await.status, 200, "and {verb} still works");
    }
    assert_eq!(named(&edge, "DELETE", &own).await.status, 204);
}

#[tokio::test]
async fn a_deleted_session_is_over_whatever_the_worker_says_to_it_and_the_worker_hears_it_once() {
    for said in [
        "200 OK\r\nContent-Length: 0\r\n\r\n",
        "204 No Content\r\n\r\n",
        "400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n",
        "500 Oops\r\nContent-Length: 3\r\n\r\nbad",
        "",
    ] {
        let worker = Worker::scripted(move |arrival, mut talk| async move {
            if arrival.method != "DELETE" {
                talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
                return Next::Keep(talk);
            }
            if !said.is_empty() {
                talk.send(format!("HTTP/1.1 {said}")).await;
            }
            Next::Close(talk)
        })
        .await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        let session = edge.session().await;
        assert_eq!(named(&edge, "POST", &session).await.status, 200);
        assert_eq!(named(&edge, "DELETE", &session).await.status, 204, "{said}");
        for verb in VERBS {
            assert_unknown(&named(&edge, verb, &session).await, verb);
        }
        let arrivals = worker.arrivals(3).await;
        assert_eq!(arrivals.len(), 3, "{said}");
        let last = (arrivals[2].method.as_str(), arrivals[2].header("mcp-session-id"));
        assert_eq!(last, ("DELETE", Some("UPSTREAM-SECRET")));
    }
}

#[tokio::test]
async fn a_worker_that_never_answers_a_delete_holds_its_client_no_longer_than_a_connection_may_take() {
    let worker = Worker::scripted(|arrival, mut talk| async move {
        if arrival.method == "DELETE" {
            talk.abandoned().await;
            return Next::Close(talk);
        }
        talk.json("Mcp-Session-Id: UPSTREAM-SECRET\r\n", &arrival.result()).await;
        Next::Keep(talk)
    })
    .await;
    let short = Duration::from_millis(100);
    let edge = Setting::native(&[("alice", &worker)]).bounds(|bounds| bounds.connect = short).start().await;
    let session = edge.session().await;
    assert_eq!(named(&edge, "DELETE", &session).await.status, 204);
    assert_unknown(&named(&edge, "POST", &session).await, "POST");
}

#[tokio::test]
async fn of_five_thousand_sessions_under_a_cap_of_fifty_a_native_worker_is_asked_for_fifty() {
    let (worker, _) = forgetful().await;
    let edge = Setting::native(&[("alice", &worker)])
        .with(|config| {
            (config.sessions.most, config.sessions.most_per_tenant) = (50, 50);
            (config.rates.tenant_per_second, config.rates.tenant_burst) = (1_000_000, 1_000_000);
        })
        .start()
        .await;
    let mut client = edge.client().await;
    let mut opened = Vec::new();
    for n in 0..5000 {
        client.post(&[], INIT).await;
        let answer = client.answer().await;
        if n < 50 {
            opened.push(answer.header("mcp-session-id").expect("a session").to_owned());
        } else {
            assert_eq!((answer.status, answer.code()), (503, -31503), "{n}");
            assert!(answer.header("retry-after").is_some());
        }
    }
    assert_eq!(worker.count(), 50);
    for session in &opened {
        assert_eq!(named(&edge, "POST", session).await.status, 200, "none was pushed out");
    }
    // An end makes room for one, and for one only.
    assert_eq!(named(&edge, "DELETE", &opened[0]).await.status, 204);
    edge.session().await;
    assert_eq!(edge.ask(&[], INIT).await.status, 503);
    assert_unknown(&named(&edge, "POST", &opened[0]).await, "POST");
}

#[tokio::test]
async fn a_worker_without_session_ids_is_initialized_and_asked_and_left() {
    let worker = Worker::plain().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let session = edge.session().await;
    let listed = named(&edge, "POST", &session).await;
    assert_eq!((listed.status, listed.text()), (200, r#"{"jsonrpc":"2.0","id":7,"result":{"of":"tools/list"}}"#));
    assert_eq!(named(&edge, "GET", &session).await.status, 405);
    assert_eq!(named(&edge, "DELETE", &session).await.status, 204);
    assert_unknown(&named(&edge, "POST", &session).await, "POST");
    assert!(worker.arrivals(2).await.iter().all(|arrival| arrival.header("mcp-session-id").is_none()));
    assert_eq!(worker.count(), 2, "there is nothing that it could be told the end of");
}
