//! The message in a body: one, with an id or without.

use serde_json::json;

use super::super::setting::{LIST, MODERN, MODERN_LIST, Setting};
use super::super::worker::{Next, Worker};
use super::{REVISIONS, Session, error_of, initialize, streaming};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;

#[tokio::test]
async fn a_body_is_one_message_in_every_revision() {
    let worker = streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        let before = worker.count();
        for array in
            ["[]".to_owned(), format!("[{LIST}]"), format!("[{LIST},{NOTE}]"), format!("[{response},{response}]")]
        {
            assert_eq!(error_of(&session.post(&array).await), (400, -32600, json!(null)), "{revision}: {array}");
        }
        let opening = edge.ask(&[], &format!("[{}]", initialize(revision))).await;
        assert_eq!(error_of(&opening), (400, -32600, json!(null)));
        assert_eq!(worker.count(), before, "not one member of them was sent");
    }
    for wrong in [format!("[{MODERN_LIST}]"), "[]".to_owned()] {
        assert_eq!(error_of(&edge.ask(MODERN, &wrong).await), (400, -32600, json!(null)), "{wrong}");
    }
    assert_eq!(error_of(&edge.ask(MODERN, response).await), (400, -32600, json!(1)), "a client answers nothing there");
}

#[tokio::test]
async fn what_asks_for_nothing_is_accepted_without_a_body() {
    let worker = streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let quiet = [
        NOTE,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":"theirs","result":{"roots":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#,
    ];
    let mut sent = 0;
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        for body in quiet {
            let answer = session.post(body).await;
            assert_eq!((answer.status, answer.text()), (202, ""), "{revision}: {body}");
        }
        sent += 1 + quiet.len();
        let arrivals = worker.arrivals(sent).await;
        for (arrival, body) in arrivals[sent - quiet.len()..].iter().zip(quiet) {
            assert_eq!(arrival.body, body.as_bytes(), "{revision}");
        }
    }
    // Which headers a notification repeats, the stateless revision leaves undefined.
    for headers in [&MODERN[..1], MODERN] {
        let answer = edge.ask(headers, NOTE).await;
        assert_eq!((answer.status, answer.text()), (202, ""), "{headers:?}");
    }
}

#[tokio::test]
async fn a_worker_that_accepts_in_other_words_is_told_on_as_202_without_a_body() {
    for yes in [
        "200 OK\r\nContent-Length: 0\r\n\r\n",
        "204 No Content\r\n\r\n",
        "200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnull",
        "202 Accepted\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\naccepted",
    ] {
        let worker = super::worker(move |_, mut talk| async move {
            talk.send(format!("HTTP/1.1 {yes}")).await;
            Next::Keep(talk)
        })
        .await;
        let edge = Setting::native(&[("alice", &worker)]).start().await;
        for revision in REVISIONS {
            let answer = Session::open(&edge, revision).await.post(NOTE).await;
            assert_eq!((answer.status, answer.text(), answer.header("content-type")), (202, "", None), "{yes}");
        }
        assert_eq!(edge.ask(MODERN, NOTE).await.status, 202, "{yes}");
    }
}

#[tokio::test]
async fn what_asks_for_nothing_and_is_refused_by_the_worker_gets_its_4xx() {
    let worker = super::worker(|_, mut talk| async move {
        let body = r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such thing"}}"#;
        let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ";
        talk.send(format!("{head}{}\r\n\r\n{body}", body.len())).await;
        Next::Keep(talk)
    })
    .await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        assert_eq!(error_of(&session.post(NOTE).await), (400, -32602, json!("no id")), "{revision}");
    }
    assert_eq!(error_of(&edge.ask(MODERN, NOTE).await), (400, -32602, json!("no id")));
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent_and_null_is_none() {
    let worker = streaming().await;
    let edge = Setting::native(&[("alice", &worker)]).start().await;
    let sound = ["0", "-1", "7", r#""7""#, r#""""#, r#""grü\u00dfe""#, "123456789012345678901234567890"];
    let unsound = ["null", "1.5", "true", "{}", "[]"];
    for revision in REVISIONS {
        let session = Session::open(&edge, revision).await;
        for id in sound {
            let answer = session.post(&LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
            assert!(answer.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)), "{answer:?}");
        }
        for id in unsound {
            let answer = session.post(&LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
            assert_eq!(error_of(&answer), (400, -32600, json!(null)), "{revision}: {id}");
        }
    }
    for id in sound {
        let answer = edge.ask(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
        assert!(answer.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)), "{answer:?}");
    }
    for id in unsound {
        let answer = edge.ask(MODERN, &MODERN_LIST.replace("\"id\":7", &format!("\"id\":{id}"))).await;
        assert_eq!(error_of(&answer), (400, -32600, json!(null)), "{id}");
    }
}

#[tokio::test]
async fn a_cancellation_of_nothing_is_taken_and_the_session_goes_on() {
    for revision in REVISIONS {
        for sessions in [true, false] {
            let worker = if sessions { streaming().await } else { Worker::plain().await };
            let edge = Setting::native(&[("alice", &worker)]).start().await;
            let session = Session::open(&edge, revision).await;
            // The second is of the `initialize`, which is over and cannot be cancelled.
            for params in [r#"{"requestId":"unheard-of"}"#, r#"{"requestId":1}"#, "{}"] {
                let cancel = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
                let answer = session.post(&cancel).await;
                assert_eq!((answer.status, answer.text()), (202, ""), "{revision}: {params}");
            }
            assert_eq!(session.post(LIST).await.status, 200, "{revision}");
        }
    }
}
