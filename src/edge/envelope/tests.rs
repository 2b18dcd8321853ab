use bytes::Bytes;

use super::{Call, Envelope, Era, Kind, Message};
use crate::edge::gate::Gate;
use crate::edge::{Admitted, Cause, Config, Paced, Rejection};
use crate::identity::{Catalogue, Principal};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

async fn parse(headers: &[(&str, &str)], body: impl Into<Bytes>) -> Result<Message, Rejection> {
    let mut config = Config::default();
    config.requests.most_body_bytes = 4096;
    let mut request = http::Request::post("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body).expect("a request");
    let paced = Paced::for_test(request, Principal::for_test("alice", Catalogue::Sandbox));
    let parsed = Envelope::new(&config).check(Admitted::for_test(paced)).await?;
    match parsed.into_parts().3 {
        Call::Message(message) => Ok(message),
        Call::Stream | Call::End => unreachable!("a POST carries a message"),
    }
}

/// The refusal of a body without headers: its cause and the id it names.
async fn refusal(body: &str) -> (Cause, Option<String>) {
    let rejection = parse(&[], body.to_owned()).await.err().unwrap_or_else(|| panic!("{body} passed"));
    (rejection.cause, rejection.id.map(|id| id.raw().to_owned()))
}

async fn modern(headers: &[(&str, &str)], method: &str, params: &str) -> Result<Era, Cause> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    parse(headers, body).await.map(|message| message.era).map_err(|rejection| rejection.cause)
}

#[tokio::test]
async fn a_legacy_call_is_read_and_its_bytes_are_kept() {
    let body = r#" {"jsonrpc":"2.0","id":18446744073709551616,"method":"tools/call","params":{"x":1.0e2}} "#;
    let message = parse(&[], body).await.expect("a message");
    assert_eq!(message.body, body.as_bytes());
    assert_eq!(message.era, Era::Legacy);
    let Kind::Request { id, method } = message.kind else { panic!("a request") };
    assert_eq!((id.raw(), method.as_str()), ("18446744073709551616", "tools/call"));
}

#[tokio::test]
async fn a_message_is_a_request_a_notification_or_a_response() {
    let kind = async |body: &'static str| parse(&[], body).await.expect("a message").kind;
    let method = "notifications/x".to_owned();
    assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).await, Kind::Notification { method });
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await, Kind::Response);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#).await, Kind::Response);
}

#[tokio::test]
async fn what_is_not_json_cannot_be_parsed() {
    for bad in ["", "{", "nope", r#"{"a":1}x"#, "{'a':1}", "\u{feff}{}"] {
        assert_eq!(refusal(bad).await, (Cause::Unparsable, None), "{bad}");
    }
    assert_eq!(parse(&[], b"{\"a\":\"\xff\"}".to_vec()).await.err().map(|r| r.cause), Some(Cause::Unparsable));
}

#[tokio::test]
async fn what_is_no_single_message_is_refused() {
    for bad in [
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        "1",
        "null",
        r#""x""#,
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"initialize"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
    ] {
        assert!(matches!(refusal(bad).await.0, Cause::BadShape(_)), "{bad}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_id_as_soon_as_there_is_one() {
    let (_, id) = refusal(r#"{"id":"x","method":"ping"}"#).await;
    assert_eq!(id.as_deref(), Some(r#""x""#));
    let (_, id) = refusal(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#).await;
    assert_eq!(id, None);
}

#[tokio::test]
async fn duplicates_are_refused_where_the_edge_decides_by_them() {
    for bad in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"k":1,"k":1}}}"#,
    ] {
        assert!(matches!(refusal(bad).await.0, Cause::Repeated { .. }), "{bad}");
    }
    let inside = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"k":1,"k":2}}}"#;
    assert!(parse(&[], inside).await.is_ok());
}

#[tokio::test]
async fn a_body_at_the_cap_passes_and_one_more_byte_does_not() {
    let body = |length: usize| {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
        format!("{text}{}", " ".repeat(length - text.len()))
    };
    assert!(parse(&[], body(4096)).await.is_ok());
    assert_eq!(parse(&[], body(4097)).await.err().map(|r| r.cause), Some(Cause::BodyTooLarge { most: 4096 }));
}

#[tokio::test]
async fn nesting_of_127_passes_and_one_more_does_not() {
    let nested = |depth: usize| {
        // Two of the levels are the message and its params.
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":"[[[\"[[","b":{open}1{close},"c":[[]]}}}}"#)
    };
    assert!(parse(&[], nested(127)).await.is_ok());
    assert!(matches!(refusal(&nested(128)).await.0, Cause::BadShape(_)));
    assert!(matches!(refusal(&nested(1900)).await.0, Cause::BadShape(_)));
}

#[tokio::test]
async fn a_modern_request_repeats_its_method_and_name_in_headers() {
    let version = ("mcp-protocol-version", "2026-07-28");
    let call = ("mcp-method", "tools/call");
    let params = format!(r#""name":"ä",{META}"#);
    let good = [version, call, ("mcp-name", "=?base64?w6Q=?=")];
    assert_eq!(modern(&good, "tools/call", &params).await, Ok(Era::Modern));
    assert_eq!(modern(&[version, ("mcp-method", "tools/list")], "tools/list", META).await, Ok(Era::Modern));
    for (headers, problem) in [
        (vec![call], "is missing"),
        (vec![version], "is missing"),
        (vec![version, call], "is missing"),
        (vec![version, ("mcp-method", "Tools/Call")], "differs from the body"),
        (vec![version, call, call], "is repeated"),
        (vec![version, call, ("mcp-name", "x")], "differs from the body"),
        (vec![version, call, ("mcp-name", "=?base64?!?=")], "holds invalid base64"),
        (vec![("mcp-protocol-version", "2099-01-01"), call], "differs from the body's _meta"),
    ] {
        match modern(&headers, "tools/call", &params).await {
            Err(Cause::HeaderMismatch { problem: found, .. }) => assert_eq!(found, problem, "{headers:?}"),
            other => panic!("{headers:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_modern_notification_needs_no_header_and_has_none_twice() {
    let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{META}}}}}"#);
    let (method, name) = (("mcp-method", "notifications/x"), ("mcp-name", "y"));
    for once in [vec![], vec![method], vec![method, name]] {
        assert!(parse(&once, body.clone()).await.is_ok(), "{once:?}");
    }
    for twice in [vec![method, method], vec![name, method, name]] {
        let cause = parse(&twice, body.clone()).await.err().map(|rejection| rejection.cause);
        assert!(matches!(cause, Some(Cause::HeaderMismatch { problem: "is repeated", .. })), "{twice:?}: {cause:?}");
    }
}

#[tokio::test]
async fn a_modern_request_carries_its_version_and_capabilities() {
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")];
    assert!(matches!(modern(&headers, "ping", "").await, Err(Cause::MissingMeta(_))));
    let bare = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    assert!(matches!(modern(&headers, "ping", bare).await, Err(Cause::MissingMeta(_))));
    let unknown = META.replace("2026-07-28", "2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "ping")];
    let requested = "2099-01-01".to_owned();
    assert_eq!(modern(&headers, "ping", &unknown).await, Err(Cause::UnsupportedVersion { requested }));
}

#[tokio::test]
async fn initialize_belongs_to_the_legacy_era() {
    assert_eq!(modern(&[], "initialize", r#""protocolVersion":"2026-07-28""#).await, Ok(Era::Opening));
    assert_eq!(modern(&[("mcp-protocol-version", "nonsense")], "initialize", "").await, Ok(Era::Opening));
    let version = ("mcp-protocol-version", "2026-07-28");
    assert!(matches!(modern(&[version], "initialize", "").await, Err(Cause::HeaderMismatch { .. })));
    assert_eq!(modern(&[version], "initialize", META).await, Err(Cause::MethodRemoved { method: "initialize" }));
    assert_eq!(modern(&[], "initialize", META).await, Err(Cause::MethodRemoved { method: "initialize" }));
}

#[tokio::test]
async fn an_unknown_legacy_version_is_refused_within_a_session() {
    for good in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(modern(&[("mcp-protocol-version", good)], "ping", "").await, Ok(Era::Legacy), "{good}");
    }
    for bad in ["2024-11-05", "1999-01-01", "x", ""] {
        assert_eq!(modern(&[("mcp-protocol-version", bad)], "ping", "").await, Err(Cause::BadLegacyVersion), "{bad}");
    }
}

#[tokio::test]
async fn a_modern_notification_needs_no_headers_and_a_response_is_refused() {
    let notification = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{META}}}}}"#);
    assert_eq!(parse(&[], notification).await.map(|message| message.era).ok(), Some(Era::Modern));
    let headers = [("mcp-protocol-version", "2026-07-28")];
    let response = parse(&headers, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert!(matches!(response.err().map(|rejection| rejection.cause), Some(Cause::BadShape(_))));
}
