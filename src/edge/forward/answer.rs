//! What a worker's answer is, judged by its head.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Response, StatusCode};
use http_body::Body;

use crate::edge::{Answer, Cause, empty};

/// What the call is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    /// A JSON-RPC response, alone or at the end of a stream.
    Result,
    /// Nothing but a status.
    Acceptance,
    Stream,
}

/// What a worker's 404 means to the client that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// The worker has forgotten the session that the edge named.
    Session,
    /// A method that does not exist, if the answer says so.
    Method,
    /// Neither, and a legacy client would take it for the end of its session and send the call again.
    Nothing,
}

/// How an answer that may pass is told on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Json,
    Events,
    Nothing,
}

/// Whether the answer may pass, and in which shape. A worker's complaint about the edge never reaches a client as one.
pub(super) fn judge<B: Body>(response: &Response<B>, expects: Expects, absent: Absent) -> Result<Shape, Cause> {
    let status = response.status();
    let headers = response.headers();
    if status.is_informational() {
        return Err(Cause::WorkerAnswerUnusable("it speaks of another protocol"));
    }
    // Whichever of the two is right, what follows on the connection might be taken for the next answer.
    if headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING) {
        return Err(Cause::WorkerAnswerUnusable("its length is given in two ways"));
    }
    if status.is_redirection() || REFUSALS.contains(&status) {
        return Err(Cause::WorkerRefusedUs);
    }
    if status == StatusCode::NOT_FOUND {
        match absent {
            Absent::Session => return Err(Cause::UnknownSession),
            Absent::Nothing => return Err(Cause::WorkerAnswerUnusable(ONLY_ABSENT)),
            Absent::Method => {}
        }
    }
    if expects == Expects::Stream && status == StatusCode::METHOD_NOT_ALLOWED {
        return Err(Cause::MethodNotAllowed { allow: "POST, DELETE" });
    }
    if headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
        return Err(Cause::WorkerAnswerUnusable("it is compressed"));
    }
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next();
    if kinds.next().is_some() {
        return Err(Cause::WorkerAnswerUnusable("its type is given twice"));
    }
    let shape = kind.and_then(shape_of);
    let empty = response.body().is_end_stream() || status == StatusCode::NO_CONTENT;
    match shape {
        // What was not asked for has no answer, whatever the worker says beside its yes.
        _ if status.is_success() && expects == Expects::Acceptance => Ok(Shape::Nothing),
        _ if status.is_success() && empty => Err(Cause::WorkerAnswerUnusable("it is empty")),
        Some(shape) if !empty => Ok(shape),
        _ if status.is_success() => Err(Cause::WorkerAnswerUnusable("it is neither JSON nor an event stream")),
        _ if status == StatusCode::NOT_FOUND => Err(Cause::WorkerAnswerUnusable(ONLY_ABSENT)),
        _ => Err(Cause::WorkerError(status)),
    }
}

/// The worker's session id in an answer to `initialize`.
pub(super) fn session(headers: &HeaderMap) -> Result<Option<String>, Cause> {
    let mut ids = headers.get_all("mcp-session-id").iter();
    let Some(id) = ids.next() else { return Ok(None) };
    let text = id.to_str().ok().filter(|text| {
        (1..=MOST_SESSION_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    match text {
        Some(text) if ids.next().is_none() => Ok(Some(text.to_owned())),
        _ => Err(Cause::WorkerAnswerUnusable("its session id is malformed")),
    }
}

/// The end of an exchange that the client has cancelled: a stream without an event.
pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(empty());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Whether a head announces an event stream.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(shape_of) == Some(Shape::Events)
}

fn shape_of(kind: &HeaderValue) -> Option<Shape> {
    let kind = kind.to_str().ok()?.split(';').next()?.trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Some(Shape::Json)
    } else {
        kind.eq_ignore_ascii_case("text/event-stream").then_some(Shape::Events)
    }
}

/// To a client 404 means "session gone" or "no such method", so it is not passed on for anything else.
const ONLY_ABSENT: &str = "it says that there is nothing here";

/// These are about the edge's own credential and address, which no client can mend.
const REFUSALS: [StatusCode; 4] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
    StatusCode::MISDIRECTED_REQUEST,
];

/// The original's bound.
const MOST_SESSION_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Absent, Expects, Shape, judge};
    use crate::edge::Cause;
    use bytes::Bytes;
    use http::{Response, StatusCode};
    use http_body_util::Full;

    fn check(status: u16, kind: Option<&str>, body: &'static str, expects: Expects) -> Result<Shape, Cause> {
        let mut response = Response::builder().status(status);
        if let Some(kind) = kind {
            response = response.header("content-type", kind);
        }
        judge(&response.body(Full::new(Bytes::from(body))).expect("a response"), expects, Absent::Method)
    }

    const JSON: Option<&str> = Some("application/json");

    #[test]
    fn json_and_event_streams_pass_with_their_status() {
        assert_eq!(check(200, JSON, "{}", Expects::Result), Ok(Shape::Json));
        assert_eq!(check(200, Some("Text/Event-Stream; charset=utf-8"), "x", Expects::Result), Ok(Shape::Events));
        for status in [400, 404, 429, 500, 503] {
            assert_eq!(check(status, JSON, "{}", Expects::Result), Ok(Shape::Json), "{status}");
        }
        for (kind, body) in [(None, ""), (JSON, "{}"), (Some("text/html"), "x")] {
            assert_eq!(check(202, kind, body, Expects::Acceptance), Ok(Shape::Nothing), "{body}");
        }
        assert_eq!(check(400, JSON, "{}", Expects::Acceptance), Ok(Shape::Json));
    }

    #[test]
    fn a_404_means_what_the_exchange_can_mean_by_it() {
        let response = || Response::builder().status(404).header("content-type", "application/json");
        let check = |absent| {
            judge(&response().body(Full::new(Bytes::from("{}"))).expect("a response"), Expects::Result, absent)
        };
        assert_eq!(check(Absent::Session), Err(Cause::UnknownSession));
        assert_eq!(check(Absent::Method), Ok(Shape::Json));
        assert!(matches!(check(Absent::Nothing), Err(Cause::WorkerAnswerUnusable(_))));
    }

    #[test]
    fn an_answer_whose_end_is_doubtful_or_that_is_none_is_not_usable() {
        let check = |response: http::response::Builder| {
            let response = response.header("content-type", "application/json").body(Full::new(Bytes::from("{}")));
            judge(&response.expect("a response"), Expects::Result, Absent::Method)
        };
        let both = Response::builder().header("content-length", "2").header("transfer-encoding", "chunked");
        assert!(matches!(check(both), Err(Cause::WorkerAnswerUnusable(_))));
        assert!(matches!(check(Response::builder().status(101)), Err(Cause::WorkerAnswerUnusable(_))));
        assert_eq!(check(Response::builder().header("content-length", "2")), Ok(Shape::Json));
    }

    #[test]
    fn a_complaint_about_the_edge_is_never_passed_on() {
        for status in [301, 307, 401, 403, 407, 421] {
            assert_eq!(check(status, JSON, "{}", Expects::Result), Err(Cause::WorkerRefusedUs), "{status}");
        }
    }

    #[test]
    fn what_no_client_can_read_is_told_as_such() {
        let unusable = |answer| matches!(answer, Err(Cause::WorkerAnswerUnusable(_)));
        assert!(unusable(check(200, Some("text/html"), "x", Expects::Result)));
        assert!(unusable(check(200, None, "x", Expects::Result)));
        assert!(unusable(check(202, None, "", Expects::Result)));
        assert!(unusable(check(404, Some("text/plain"), "x", Expects::Result)));
        let error = Err(Cause::WorkerError(StatusCode::INTERNAL_SERVER_ERROR));
        assert_eq!(check(500, Some("text/plain"), "x", Expects::Result), error);
    }
}
