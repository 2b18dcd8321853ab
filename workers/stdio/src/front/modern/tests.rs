use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{check, is, status};
use crate::frame::Frame;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const CALL: (&str, &str) = ("mcp-method", "tools/call");
const NAME: (&str, &str) = ("mcp-name", "x");

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// The status of a refusal, 200 where there is none.
fn checked(pairs: &[(&'static str, &str)], body: &str) -> u16 {
    let (frame, kind) = Frame::read(body).unwrap();
    let headers = headers(pairs);
    assert!(is(&headers, &frame), "{body}");
    check(&headers, &frame, kind).map_or_else(|answer| answer.status().as_u16(), |()| 200)
}

fn call(name: &str) -> String {
    format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}",{META}}}}}"#)
}

#[test]
fn a_request_and_its_headers_agree() {
    assert_eq!(checked(&[VERSION, CALL, NAME], &call("x")), 200);
    assert_eq!(checked(&[VERSION, CALL, ("mcp-name", "=?base64?w6Q=?=")], &call("ä")), 200);
    // Where the body names nothing, nothing is mirrored.
    assert_eq!(checked(&[VERSION, CALL], &format!(r#"{{"id":1,"method":"tools/call","params":{{{META}}}}}"#)), 200);
    assert_eq!(checked(&[], &format!(r#"{{"method":"notifications/x","params":{{{META}}}}}"#)), 200);
}

#[test]
fn what_is_missing_repeated_or_different_is_refused() {
    let other = ("mcp-protocol-version", "2026-07-29");
    for pairs in [
        vec![CALL, NAME],
        vec![VERSION, NAME],
        vec![VERSION, CALL],
        vec![other, CALL, NAME],
        vec![VERSION, VERSION, CALL, NAME],
        vec![VERSION, CALL, CALL, NAME],
        vec![VERSION, CALL, NAME, NAME],
        vec![VERSION, ("mcp-method", "Tools/Call"), NAME],
        vec![VERSION, CALL, ("mcp-name", "y")],
        vec![VERSION, CALL, ("mcp-name", "=?base64?!?=")],
        vec![VERSION, CALL, ("mcp-name", "\u{e4}")],
    ] {
        assert_eq!(checked(&pairs, &call("x")), 400, "{pairs:?}");
    }
}

#[test]
fn a_request_says_its_revision_and_its_clients_abilities() {
    let pairs = [VERSION, ("mcp-method", "tools/list")];
    let list = |meta: &str| format!(r#"{{"id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let abilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    assert_eq!(checked(&pairs, &list(&format!("{version},{abilities}"))), 200);
    assert_eq!(checked(&pairs, &list(version)), 400);
    assert_eq!(checked(&pairs, &list(abilities)), 400);
}

#[test]
fn initialize_and_responses_do_not_belong_here() {
    assert_eq!(checked(&[VERSION], &format!(r#"{{"id":1,"method":"initialize","params":{{{META}}}}}"#)), 404);
    assert_eq!(checked(&[VERSION], r#"{"id":1,"method":"initialize"}"#), 400);
    assert_eq!(checked(&[VERSION], r#"{"id":1,"result":{}}"#), 400);
}

#[test]
fn an_error_of_the_child_has_its_status() {
    for (code, expected) in [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200)] {
        let line = format!(r#"{{"id":1,"error":{{"code":{code},"message":""}}}}"#);
        assert_eq!(status(&Frame::read(&line).unwrap().0), StatusCode::from_u16(expected).unwrap(), "{code}");
    }
}
