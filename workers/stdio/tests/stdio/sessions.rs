//! The era of sessions: one process each.

use std::time::Duration;

use serde_json::json;
use stdio::Limits;

use crate::world::{INITIALIZE, Watched, limits, program, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_used_and_ended() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let rest = session.request("1.50e1", "told", r#""told":"é""#).rest();
        assert!(rest.starts_with(r#"{"jsonrpc": "2.0", "id": 1.50e1, "result""#), "{rest}");
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(session.send("POST", note).status(), 202);
        assert_eq!(session.request("3", "chatter", "").result(), json!({"resultType": "complete"}));
        let process = Watched::new(&session.request("4", "told", "").result()["pid"]);
        assert_eq!(session.send("DELETE", "").status(), 204);
        process.ends();
        assert_eq!(session.send("POST", note).status(), 404);
        assert_eq!(session.send("DELETE", "").status(), 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_show_the_token_is_not_served() {
    with(program("sessions"), limits(), |client, _stop| {
        for token in ["Bearer wrong", "Bearer ", "Basic x"] {
            assert_eq!(client.send("POST", &[("authorization", token)], INITIALIZE).status(), 401, "{token}");
        }
        assert_eq!(client.send("POST", &[("origin", "http://localhost")], INITIALIZE).status(), 403);
        assert_eq!(client.send("POST", &[], "[]").status(), 400);
        assert_eq!(client.send("PUT", &[], "").status(), 405);
        assert_eq!(client.send("GET", &[], "").status(), 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_before_the_answer_with_the_clients_token() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let mut reply = session.request("7", "told", r#""_meta":{"progressToken":"a\u0062"}"#);
        assert_eq!(reply.event()["params"]["progressToken"], "ab");
        assert_eq!(reply.event()["id"], 7);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_running_is_refused_and_a_cancelled_call_is_let_go() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let mut held = session.request(r#""x""#, "hold", r#""_meta":{"progressToken":1}"#);
        held.event();
        assert_eq!(session.request(r#""x""#, "told", "").status(), 400);
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0078"}}"#;
        assert_eq!(session.send("POST", cancel).status(), 202);
        assert_eq!(held.event()["error"]["code"], -32800);
        assert_eq!(session.request("2", "cancellation", "").result()["cancelled"].as_array().unwrap().len(), 1);
        // Of a call that does not run, the child hears nothing.
        assert_eq!(session.send("POST", cancel).status(), 202);
        assert_eq!(session.request("3", "cancellation", "").result()["cancelled"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_a_session_has_not_cancelled() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let mut held = session.request("1", "hold", r#""_meta":{"progressToken":1}"#);
        held.event();
        drop(held);
        assert_eq!(session.request("2", "told", "").result()["calls"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_is_open_and_hears_what_no_call_does() {
    with(program("sessions"), limits(), |client, _stop| {
        let session = client.open();
        let mut stream = session.send("GET", "");
        assert_eq!(stream.status(), 200);
        assert_eq!(session.send("GET", "").status(), 409);
        drop(stream);
        // A question reaches the call that is running.
        let mut asked = session.request("1", "ask", r#""_meta":{"progressToken":1}"#);
        asked.event();
        assert_eq!(asked.event()["method"], "sampling/createMessage");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_server_dies_is_told_that_its_outcome_is_unknown_and_no_other_session_is_touched() {
    with(program("sessions"), limits(), |client, _stop| {
        let (session, other) = (client.open(), client.open());
        let mut held = session.request("1", "hold", r#""_meta":{"progressToken":1}"#);
        held.event();
        let mut dead = session.request("2", "die", "");
        assert_eq!(dead.status(), 502);
        assert!(dead.rest().contains("outcome is unknown"));
        assert!(held.event()["error"]["message"].as_str().unwrap().contains("outcome is unknown"));
        assert_eq!(session.request("3", "told", "").status(), 404);
        assert_eq!(other.request("3", "told", "").status(), 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_uses_ends_and_one_with_a_stream_stays() {
    let limits = Limits { idle: Duration::from_secs(2), ..limits() };
    with(program("sessions"), limits, |client, _stop| {
        let (idle, used) = (client.open(), client.open());
        let process = Watched::new(&idle.request("1", "told", "").result()["pid"]);
        let kept = Watched::new(&used.request("1", "told", "").result()["pid"]);
        let mut stream = used.send("GET", "");
        assert_eq!(stream.status(), 200);
        process.ends();
        assert_eq!(idle.request("2", "told", "").status(), 404);
        assert!(kept.is_running());
    })
    .await;
}
