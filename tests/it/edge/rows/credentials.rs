//! Who is let in, and what a page elsewhere may do.

use super::super::setting::{LIST, MODERN, MODERN_LIST, Setting, write_store};
use super::super::talk::ABSENT;
use super::super::worker::Worker;
use super::{REVISIONS, Session, repeated, stateless, streaming};

#[tokio::test]
async fn each_kind_of_credential_has_its_status_in_every_revision() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let requests = REVISIONS.map(|revision| (vec![("MCP-Protocol-Version", revision)], LIST));
    let requests = [&requests[..], &[(MODERN.to_vec(), MODERN_LIST)]].concat();
    for (headers, body) in requests {
        for (bearer, status, challenge) in [
            (ABSENT, 401, "Bearer"),
            ("Bearer of-nobody", 401, r#"Bearer error="invalid_token""#),
            ("Bearer", 401, r#"Bearer error="invalid_token""#),
            ("Basic tok-alice", 401, r#"Bearer error="invalid_token""#),
        ] {
            let refused = edge.ask(&[&headers[..], &[("Authorization", bearer)]].concat(), body).await;
            assert_eq!((refused.status, refused.header("www-authenticate")), (status, Some(challenge)), "{headers:?}");
            assert_eq!(refused.json()["id"], serde_json::Value::Null, "the body was not read");
        }
        let twice = [("Authorization", "Bearer tok-alice"), ("Authorization", "Bearer tok-alice")];
        assert_eq!(edge.ask(&[&headers[..], &twice].concat(), body).await.status, 400, "a malformed one");
        let mut client = edge.client().await;
        let anonymous = [&headers[..], &[("Authorization", ABSENT)]].concat();
        client.request("POST", "/mcp?access_token=tok-alice", &anonymous, Some(body)).await;
        assert_eq!(client.answer().await.status, 401, "a token in the query is none");
    }
    assert_eq!(worker.count(), 0);
}

#[tokio::test]
async fn a_credential_is_looked_at_with_every_request_of_a_connection() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let mut client = edge.client().await;
    client.post(MODERN, MODERN_LIST).await;
    assert_eq!(client.answer().await.status, 200);
    client.post(&[MODERN, &[("Authorization", "Bearer tok-bob")]].concat(), MODERN_LIST).await;
    assert_eq!(client.answer().await.status, 200);
    write_store(&edge.store(), &[("tok-bob", "bob")]);
    client.post(MODERN, MODERN_LIST).await;
    assert_eq!(client.answer().await.status, 401, "on the very connection that it had opened");
    let tenants: Vec<_> = worker.arrivals(2).await;
    let tenants: Vec<_> = tenants.iter().map(|arrival| arrival.header("x-playground-tenant").unwrap()).collect();
    assert_eq!(tenants, ["alice", "bob"]);
}

#[tokio::test]
async fn tenants_whose_names_differ_by_a_space_are_told_apart_by_the_worker() {
    let worker = Worker::plain().await;
    let edge = Setting::sandbox(&worker).start().await;
    let labels = ["alice", "alice ", " alice", "al ice", "ａlice", "alice%20"];
    let tokens: Vec<_> = (0..labels.len()).map(|number| format!("tok-{number}")).collect();
    let accounts: Vec<_> = tokens.iter().map(String::as_str).zip(labels).collect();
    write_store(&edge.store(), &accounts);
    for token in &tokens {
        let bearer = format!("Bearer {token}");
        let answer = edge.ask(&[MODERN, &[("Authorization", bearer.as_str())]].concat(), MODERN_LIST).await;
        assert_eq!(answer.status, 200, "{token}");
    }
    let arrivals = worker.arrivals(labels.len()).await;
    let named =
        arrivals.iter().map(|arrival| kit::header::tenant(arrival.header("x-playground-tenant").unwrap().as_bytes()));
    let named: Vec<_> = named.map(|tenant| tenant.unwrap().to_string()).collect();
    assert_eq!(named, labels);
}

#[tokio::test]
async fn a_foreign_origin_is_forbidden_to_every_method_in_every_revision() {
    let worker = streaming().await;
    let setting = Setting::native(&[("alice", &worker)]);
    let edge = setting.with(|config| config.requests.origins = vec!["https://app.example".into()]).start().await;
    let ours = ("Origin", "https://app.example");
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        let before = worker.count();
        for foreign in ["https://evil.example", "http://app.example", "https://app.example:8443", "null"] {
            for (method, body) in [("POST", Some(LIST)), ("GET", None), ("DELETE", None)] {
                let refused = session.ask(method, &[("Origin", foreign)], body).await;
                assert_eq!((refused.status, refused.code()), (403, -31403), "{method} {foreign} {revision}");
            }
        }
        assert_eq!(worker.count(), before);
        assert_eq!(session.ask("POST", &[ours], Some(LIST)).await.status, 200);
    }
    for (origin, status) in [("https://evil.example", 403), (ours.1, 200)] {
        let answer = edge.ask(&[MODERN, &[("Origin", origin)]].concat(), MODERN_LIST).await;
        assert_eq!(answer.status, status, "{origin}");
    }
    assert!(worker.arrivals(1).await.iter().all(|arrival| arrival.header("origin").is_none()));
}

#[tokio::test]
async fn a_task_is_asked_for_at_the_callers_own_worker_and_with_a_credential_each_time() {
    let (alices, bobs) = (Worker::plain().await, Worker::plain().await);
    let edge = Setting::native(&[("alice", &alices), ("bob", &bobs)]).start().await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let body = stateless("1", method, r#""taskId":"of-alices","#);
        let headers = repeated(method, "of-alices");
        let as_whom = async |bearer| edge.ask(&[&headers[..], &[("Authorization", bearer)]].concat(), &body).await;
        assert_eq!(as_whom("Bearer tok-alice").await.status, 200, "{method}");
        assert_eq!(as_whom(ABSENT).await.status, 401, "{method}");
        assert_eq!(as_whom("Bearer tok-bob").await.status, 200, "{method}: what bob's worker says of it");
    }
    assert_eq!((alices.count(), bobs.count()), (3, 3));
}
