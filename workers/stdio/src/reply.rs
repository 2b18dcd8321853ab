//! What goes back to the edge: JSON, nothing, or an event stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};

use crate::call::Call;
use crate::outlet::{Ear, End, Said};
use crate::words::{self, CALL_CANCELLED, INTERNAL, INVALID};

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Answer {
    let mut answer = empty(status);
    *answer.body_mut() = Full::new(Bytes::from(body)).boxed();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::new()).boxed());
    *answer.status_mut() = status;
    answer
}

/// An error addressed to the request with this id, or to nobody.
pub(crate) fn refusal(status: StatusCode, id: Option<&str>, code: i32, message: &str) -> Answer {
    json(status, words::error(id, code, message, None))
}

pub(crate) fn refuse(status: StatusCode, message: &str) -> Answer {
    refusal(status, None, INVALID, message)
}

/// Nothing was done, and it is worth another try.
pub(crate) fn later(id: Option<&str>, seconds: u64, message: &str) -> Answer {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, id, INTERNAL, message);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// The answer to a call that has none.
pub(crate) fn unanswered(id: &str, end: End) -> Answer {
    let (status, code, message) = told(end);
    refusal(status, Some(id), code, message)
}

fn told(end: End) -> (StatusCode, i32, &'static str) {
    match end {
        End::Died => (StatusCode::BAD_GATEWAY, INTERNAL, DIED),
        End::Late => (StatusCode::GATEWAY_TIMEOUT, INTERNAL, LATE),
        End::Cancelled => (StatusCode::OK, CALL_CANCELLED, "The call was cancelled by its client."),
        End::Slow => (StatusCode::BAD_GATEWAY, INTERNAL, SLOW),
        End::TooLong => (StatusCode::BAD_GATEWAY, INTERNAL, TOO_LONG),
    }
}

/// An event stream of what the child says of a call. It ends with the answer, or says why there is none.
pub(crate) fn events(first: Vec<u8>, call: Call) -> Answer {
    stream(Events { first: Some(first), from: From::Call(call), is_done: false })
}

/// An event stream of what the child says aside of calls.
pub(crate) fn aside(ear: Ear) -> Answer {
    stream(Events { first: None, from: From::Session(ear), is_done: false })
}

fn stream(events: Events) -> Answer {
    let mut answer = empty(StatusCode::OK);
    *answer.body_mut() = events.boxed();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

struct Events {
    first: Option<Vec<u8>>,
    from: From,
    is_done: bool,
}

enum From {
    Call(Call),
    Session(Ear),
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return event(&first);
        }
        if self.is_done {
            return Poll::Ready(None);
        }
        let said = match &mut self.from {
            From::Call(call) => call.poll_next(cx),
            From::Session(ear) => ear.poll(cx),
        };
        match std::task::ready!(said) {
            Ok(Said::Before(line)) => event(&line),
            Ok(Said::Answer(line)) => {
                self.is_done = true;
                event(&line)
            }
            Err(end) => {
                self.is_done = true;
                match &self.from {
                    From::Call(call) => {
                        let (_, code, message) = told(end);
                        event(&words::error(Some(&call.id), code, message, None))
                    }
                    From::Session(_) => Poll::Ready(None),
                }
            }
        }
    }
}

fn event(line: &[u8]) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    let event = [b"event: message\ndata: ", line, b"\n\n"].concat();
    Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
}

const DIED: &str = "The stdio server ended during this call. The outcome is unknown; the call was not repeated. Next: \
    look before calling again; a session has to be opened anew.";
const LATE: &str = "The call took too long and was cancelled. The outcome is unknown; the call was not repeated. Next: \
    look before calling again.";
const SLOW: &str = "What the stdio server said before the answer was not read in time. The call was cancelled, its \
    outcome is unknown. Next: look before calling again, and read as it comes.";
const TOO_LONG: &str = "The stdio server has answered with a longer line than is carried, so its answer is lost. The \
    call was not repeated. Next: ask for less.";
