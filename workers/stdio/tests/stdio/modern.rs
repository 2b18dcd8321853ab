//! The era without sessions: one process for everybody.

use std::time::Duration;

use serde_json::{Value, json};
use stdio::Limits;

use crate::world::{INITIALIZE, Watched, limits, program, with};

#[tokio::test(flavor = "multi_thread")]
async fn equal_ids_of_two_clients_get_their_own_answers() {
    with(program("modern"), limits(), |client, _stop| {
        let mut held = client.modern("1.0e2", "hold", r#""told":"first""#);
        assert_eq!(held.event()["params"]["progressToken"].to_string(), "100.0");
        let mut second = client.modern("1.0e2", "release", r#""told":"second""#);
        second.event();
        assert!(second.rest().contains(r#""id": 1.0e2, "result": {"resultType": "complete", "told": "second"}"#));
        let rest = held.rest();
        assert!(rest.contains(r#""id": 1.0e2, "result": {"resultType": "complete", "told": "first"}"#), "{rest}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_without_a_session_and_by_one_process() {
    with(program("both"), limits(), |client, _stop| {
        let versions = client.modern("1", "server/discover", "").result();
        assert_eq!(versions["supportedVersions"], json!(["2026-07-28"]));
        let pid = |reply: crate::world::Reply| reply.result()["pid"].clone();
        let first = pid(client.modern("1", "told", ""));
        assert_eq!(pid(client.modern("2", "told", "")), first);
        let session = client.open();
        assert_ne!(pid(session.request("1", "told", "")), first);
        // What is no method of the server's, and what its headers deny.
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let version = ("mcp-protocol-version", "2026-07-28");
        let mut unknown = client.send("POST", &[version, ("mcp-method", "tools/list")], list);
        assert_eq!(unknown.status(), 404);
        assert_eq!(unknown.header("mcp-session-id"), None);
        let denied = client.send("POST", &[version, ("mcp-method", "tools/call")], list);
        assert_eq!(denied.message()["error"]["code"], -32020);
        for method in ["GET", "DELETE"] {
            assert_eq!(client.send(method, &[version], "").status(), 405);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_has_cancelled_its_own_call_alone() {
    with(program("modern"), limits(), |client, _stop| {
        let (mut left, mut kept) = (client.modern("1", "hold", ""), client.modern("1", "hold", r#""told":"kept""#));
        left.event();
        kept.event();
        let mut cancellation = client.modern("1", "cancellation", "");
        cancellation.event();
        drop(left);
        assert_eq!(cancellation.result()["cancelled"].as_array().unwrap().len(), 1);
        client.modern("1", "release", "").rest();
        assert_eq!(kept.result()["told"], "kept");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_sessions_alone_refuses_in_words_to_fall_back_on() {
    for eras in ["sessions", "sessions,mute", "sessions,brittle"] {
        let limits = Limits { open: Duration::from_secs(4), ..limits() };
        with(program(eras), limits, move |client, _stop| {
            for _ in 0..2 {
                let mut refused = client.modern(r#""a""#, "server/discover", "");
                assert_eq!(refused.status(), 400, "{eras}");
                let message = refused.message();
                assert_eq!((&message["id"], &message["error"]["code"]), (&json!("a"), &json!(-32600)), "{eras}");
            }
            let session = client.open();
            assert_eq!(session.request("1", "told", "").status(), 200);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sessions_refuses_initialize_and_says_what_it_has() {
    with(program("modern"), limits(), |client, _stop| {
        let mut refused = client.send("POST", &[], INITIALIZE);
        assert_eq!((refused.status(), refused.header("mcp-session-id")), (400, None));
        let error = refused.message()["error"].clone();
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"]["supported"], json!(["2026-07-28"]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_named_as_its_client_named_it_and_completed_at_the_stop() {
    with(program("modern"), limits(), |client, stop| {
        let mut listening = client.modern(r#""mine""#, "subscriptions/listen", "");
        let named = |message: &Value, place: &str| {
            message[place]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_str().unwrap().to_owned()
        };
        assert_eq!(listening.event()["method"], "notifications/progress");
        assert_eq!(named(&listening.event(), "params"), "mine");
        stop.now();
        let last = listening.event();
        assert_eq!((named(&last, "result"), &last["id"]), ("mine".to_owned(), &json!("mine")));
        assert!(!listening.rest().contains("data: "));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_shared_process_ends_its_calls_and_another_is_started() {
    with(program("both"), limits(), |client, _stop| {
        let session = client.open();
        let mut held = client.modern("1", "hold", "");
        held.event();
        let mut dead = client.modern("2", "die", "");
        dead.event();
        for mut reply in [held, dead] {
            assert!(reply.event()["error"]["message"].as_str().unwrap().contains("outcome is unknown"));
        }
        assert_eq!(session.request("1", "told", "").status(), 200);
        // It did not last, so it is left alone for a while, and nothing is sent meanwhile.
        loop {
            let mut again = client.modern("3", "told", "");
            if again.status() == 200 {
                break;
            }
            assert_eq!((again.status(), again.header("retry-after").is_some()), (503, true));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_not_ask_where_there_is_no_session() {
    with(program("modern"), limits(), |client, _stop| {
        let mut asked = client.modern("1", "ask", "");
        asked.event();
        assert_eq!(asked.event()["id"], 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shared_process_is_gone_when_the_bridge_has_ended() {
    let (tell, told) = std::sync::mpsc::channel();
    with(program("modern"), limits(), move |client, _stop| {
        tell.send(Watched::new(&client.modern("1", "told", "").result()["pid"])).unwrap();
    })
    .await;
    assert!(!told.recv().unwrap().is_running());
}
