use http::StatusCode;

use super::{Limits, Verb};
use crate::edge::gate::Gate;
use crate::edge::{Accepted, Cause, Config};

/// The verdict on a request: what it asks for, or the refusal, either at once or once its sender is known.
async fn check(request: http::request::Builder) -> Result<Verb, Cause> {
    let mut config = Config::default();
    config.requests.hosts = vec!["mcp.example".to_owned()];
    config.requests.origins = vec!["https://app.example".to_owned()];
    config.requests.most_body_bytes = 100;
    let accepted = Accepted::for_test(request.body("").expect("a request"));
    let bounded = Limits::new(&config).check(accepted).await.map_err(|rejection| rejection.cause)?;
    bounded.settle().map(|(_, _, verb)| verb)
}

fn post() -> http::request::Builder {
    http::Request::post("/mcp").header("host", "mcp.example").header("content-type", "application/json")
}

#[tokio::test]
async fn a_plain_call_passes_on_each_path() {
    assert_eq!(check(post()).await, Ok(Verb::Post));
    assert_eq!(check(post().uri("/")).await, Ok(Verb::Post));
    assert_eq!(check(post().uri("/mcp?x")).await, Ok(Verb::Post));
    // Some clients and proxies append it, and a redirect would cost the token or the body.
    assert_eq!(check(post().uri("/mcp/")).await, Ok(Verb::Post));
}

#[tokio::test]
async fn other_spellings_of_the_path_are_nothing() {
    for path in ["/mcp//", "//mcp", "/MCP", "/mcp%2f", "/%6dcp", "/./mcp", "/x/../mcp", "/mcp;a", "/sse", "/register"] {
        assert_eq!(check(post().uri(path)).await, Err(Cause::NoSuchPath), "{path}");
    }
}

#[tokio::test]
async fn a_repeated_security_header_is_refused() {
    for name in ["authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id", "content-length"] {
        let twice = post().header(name, "1").header(name, "1");
        assert_eq!(check(twice).await, Err(Cause::RepeatedHeader(name)), "{name}");
    }
    assert_eq!(check(post().header("host", "mcp.example")).await, Err(Cause::BadHost));
}

#[tokio::test]
async fn only_a_listed_origin_may_call() {
    assert_eq!(check(post().header("origin", "https://app.example")).await, Ok(Verb::Post));
    for bad in ["null", "https://evil.example", "http://app.example", "https://APP.example", ""] {
        assert_eq!(check(post().header("origin", bad)).await, Err(Cause::BadOrigin), "{bad}");
    }
}

#[tokio::test]
async fn an_origin_beside_a_wrong_host_is_forbidden_and_not_misdirected() {
    let wrong = || http::Request::post("/mcp").header("host", "evil.example");
    let status = async |request| check(request).await.expect_err("refused").status();
    assert_eq!(status(wrong()).await, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(status(wrong().header("origin", "https://evil.example")).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn only_json_that_is_not_encoded_is_read() {
    let bare = || http::Request::post("/mcp").header("host", "mcp.example");
    assert_eq!(check(bare()).await, Err(Cause::NotJson));
    for bad in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        assert_eq!(check(bare().header("content-type", bad)).await, Err(Cause::NotJson), "{bad}");
    }
    assert_eq!(check(post().header("content-encoding", "gzip")).await, Err(Cause::Encoded));
    assert_eq!(check(post().header("content-encoding", "identity")).await, Ok(Verb::Post));
}

#[tokio::test]
async fn a_declared_length_at_the_limit_passes_and_one_more_does_not() {
    assert_eq!(check(post().header("content-length", "100")).await, Ok(Verb::Post));
    for bad in ["101", "99999999999", "99999999999999999999999"] {
        assert_eq!(check(post().header("content-length", bad)).await, Err(Cause::BodyTooLarge { most: 100 }), "{bad}");
    }
}

#[tokio::test]
async fn methods_are_known_unknown_or_not_served_here() {
    let with = |method: &str| post().method(method);
    assert_eq!(check(with("DELETE")).await, Ok(Verb::Delete));
    assert_eq!(check(with("GET")).await, Ok(Verb::Get));
    for unserved in ["PUT", "PATCH", "HEAD", "OPTIONS"] {
        assert!(matches!(check(with(unserved)).await, Err(Cause::MethodNotAllowed { .. })), "{unserved}");
    }
    for unknown in ["TRACE", "CONNECT", "FOO"] {
        assert_eq!(check(with(unknown)).await, Err(Cause::UnknownMethod), "{unknown}");
    }
}

#[tokio::test]
async fn a_body_is_framed_in_one_way() {
    assert_eq!(check(post().header("transfer-encoding", "chunked")).await, Ok(Verb::Post));
    for bad in ["chunked, chunked", "gzip, chunked", "identity", "xchunked"] {
        assert_eq!(check(post().header("transfer-encoding", bad)).await, Err(Cause::BadTransferEncoding), "{bad}");
    }
}
