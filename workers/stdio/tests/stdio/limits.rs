//! Each limit at its last allowed value and one above.

use std::time::Duration;

use stdio::Limits;

use crate::world::{INITIALIZE, limits, program, with};

#[tokio::test(flavor = "multi_thread")]
async fn the_last_session_is_opened_and_one_more_is_refused() {
    with(program("sessions"), Limits { sessions: 2, ..limits() }, |client, _stop| {
        let _held = [client.open(), client.open()];
        let mut refused = client.send("POST", &[], INITIALIZE);
        assert_eq!((refused.status(), refused.header("retry-after").is_some()), (503, true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_call_begins_and_one_more_is_refused() {
    with(program("both"), Limits { calls: 2, ..limits() }, |client, _stop| {
        let session = client.open();
        let hold = |id| session.request(id, "hold", r#""_meta":{"progressToken":1}"#);
        let mut held = [hold("1"), hold("2"), client.modern("1", "hold", ""), client.modern("1", "hold", "")];
        for held in &mut held {
            held.event();
        }
        assert_eq!(session.request("3", "told", "").status(), 503);
        assert_eq!(client.modern("3", "told", "").status(), 503);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_subscription_is_opened_and_one_more_is_refused() {
    with(program("modern"), Limits { subscriptions: 1, ..limits() }, |client, _stop| {
        let mut held = client.modern("1", "subscriptions/listen", "");
        held.event();
        assert_eq!(client.modern("1", "subscriptions/listen", "").status(), 503);
        assert_eq!(client.modern("1", "told", "").status(), 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_line_passes_and_one_byte_more_loses_its_own_answer_alone() {
    with(program("sessions"), Limits { line: 1000, ..limits() }, |client, _stop| {
        let session = client.open();
        assert_eq!(session.request("1", "line", r#""bytes":1000"#).status(), 200);
        let mut hold = session.request("9", "hold", r#""_meta":{"progressToken":1}"#);
        hold.event();
        let mut lost = session.request("2", "line", r#""bytes":1001"#);
        assert_eq!(lost.status(), 502);
        assert!(lost.rest().contains("longer line than is carried"));
        session.request("3", "release", "").rest();
        assert_eq!(hold.event()["id"], 9);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_body_passes_and_one_byte_more_is_refused() {
    let mut limits = limits();
    limits.http.body = INITIALIZE.len() + 10;
    with(program("sessions"), limits, |client, _stop| {
        let body = |more: usize| format!("{INITIALIZE}{}", " ".repeat(more));
        assert_eq!(client.send("POST", &[], &body(10)).status(), 200);
        assert_eq!(client.send("POST", &[], &body(11)).status(), 413);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_of_a_call_is_bounded_and_not_its_first_message_alone() {
    with(program("both"), Limits { call: Duration::from_millis(500), ..limits() }, |client, _stop| {
        let session = client.open();
        let mut streams =
            [session.request("1", "hold", r#""_meta":{"progressToken":1}"#), client.modern("1", "hold", "")];
        for stream in &mut streams {
            assert_eq!(stream.event()["method"], "notifications/progress");
            assert!(stream.event()["error"]["message"].as_str().unwrap().contains("took too long"));
        }
        let mut silent = session.request("2", "hold", "");
        assert_eq!(silent.status(), 504);
        // The child was told of each, in both processes.
        assert_eq!(session.request("3", "cancellation", "").result()["cancelled"].as_array().unwrap().len(), 2);
        assert_eq!(client.modern("3", "cancellation", "").result()["cancelled"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_initialize_in_time_opens_nothing() {
    with(program("sessions"), Limits { open: Duration::ZERO, ..limits() }, |client, _stop| {
        let mut late = client.send("POST", &[], INITIALIZE);
        assert_eq!((late.status(), late.header("mcp-session-id")), (504, None));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_loses_its_own_call_and_holds_nobody_up() {
    with(program("modern"), Limits { line: 64 << 10, ..limits() }, |client, _stop| {
        // More than the kernel's buffers and ours hold together.
        let mut stalled = client.modern("1", "flood", r#""lines":30000"#);
        stalled.event();
        assert_eq!(client.modern("2", "told", "").result()["resultType"], "complete");
        let rest = stalled.rest();
        assert!(rest.contains("was not read in time"), "{}", &rest[rest.len().saturating_sub(500)..]);
    })
    .await;
}
