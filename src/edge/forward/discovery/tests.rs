use super::message;
use crate::edge::forward::edited::within;
use crate::edge::forward::sse;

/// What becomes of an answer with this result; `None` where its bytes stay.
fn check(result: &str, neutral: bool) -> Option<String> {
    let text = format!(r#"{{"jsonrpc":"2.0", "id":1, "result":{result}}}"#);
    let told = message(text.as_bytes(), neutral).expect("usable")?;
    let told = String::from_utf8(told).expect("text");
    let rest = told.strip_prefix(r#"{"jsonrpc":"2.0", "id":1, "result":"#).expect("the message is as it came");
    Some(rest.strip_suffix('}').expect("to its end").to_owned())
}

#[test]
fn an_answer_with_nothing_to_change_stays_as_it_is() {
    for result in [
        r#"{"supportedVersions":["2026-07-28", "2025-03-26"],"cacheScope":"private"}"#,
        r#"{ "cacheScope" : "private" , "supportedVersions" : [ ] }"#,
        r#"{"supportedVersions":"all","cacheScope":"private"}"#,
        "7",
        "null",
    ] {
        assert_eq!(check(result, false), None, "{result}");
    }
    assert_eq!(check(r#"{"cacheScope":"public","supportedVersions":["2026-07-28"]}"#, true), None);
    for other in ["", "{", "[]", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#] {
        assert_eq!(message(other.as_bytes(), false), Ok(None), "{other}");
    }
}

#[test]
fn versions_that_the_edge_does_not_carry_are_left_out_in_their_order() {
    for (before, after) in [
        (r#"["2024-11-05", "2025-11-25","2026-07-28"]"#, r#"["2025-11-25","2026-07-28"]"#),
        (r#"["2026-07-28","2027-01-01","2025-06-18"]"#, r#"["2026-07-28","2025-06-18"]"#),
        (r#"["2026-07-28",7,null]"#, r#"["2026-07-28"]"#),
        (r#"["2024-11-05"]"#, "[]"),
    ] {
        let result = |versions: &str| format!(r#"{{"a":1.0e2, "supportedVersions":{versions} ,"b":[{{}}]}}"#);
        assert_eq!(check(&result(before), true), Some(result(after)));
    }
}

#[test]
fn the_answer_of_a_worker_of_one_tenant_is_private_to_it() {
    for (before, after) in [
        (r#"{"cacheScope":"public","x":1}"#, r#"{"cacheScope":"private","x":1}"#),
        (r#"{"x":1,"cacheScope": null }"#, r#"{"x":1,"cacheScope": "private" }"#),
        (r#"{"x":1}"#, r#"{"cacheScope":"private","x":1}"#),
        ("{}", r#"{"cacheScope":"private"}"#),
        (
            r#"{"cacheScope":"public","supportedVersions":["x"],"cacheScope":"public"}"#,
            r#"{"cacheScope":"private","supportedVersions":[],"cacheScope":"private"}"#,
        ),
    ] {
        assert_eq!(check(before, false), Some(after.to_owned()));
        assert!(!before.contains("public") || before.contains('[') || check(before, true).is_none());
    }
}

#[test]
fn in_a_stream_only_the_data_of_the_event_changes() {
    let stream = "id: 0\ndata:\n\ndata: {\"result\":{\"cacheScope\":\"public\",\nid: 7\ndata:\"ttlMs\":1}}\n\n: c\n\n";
    for text in [stream.to_owned(), stream.replace('\n', "\r\n"), stream.replace('\n', "\r")] {
        let event = sse::events(text.as_bytes()).pop().expect("an event");
        let told = message(&event.data, false).expect("usable").expect("changed");
        let told = String::from_utf8(within(text.as_bytes(), &event.lines, &told)).expect("text");
        assert_eq!(told, text.replace("public", "private").replace("data:\"", "data: \""));
    }
}
