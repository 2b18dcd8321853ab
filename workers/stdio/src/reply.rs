//! What goes back to the edge: JSON, nothing, or an event stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::mpsc::Receiver;

use crate::router::Said;

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
    json(status, error(id, code, message))
}

fn error(id: Option<&str>, code: i32, message: &str) -> Vec<u8> {
    let message = serde_json::Value::from(message);
    let id = id.unwrap_or("null");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}").into_bytes()
}

/// An event stream of what the child says. A call's stream ends with its answer, or says that there will be none.
pub(crate) fn events(first: Option<Vec<u8>>, ear: Receiver<Said>, call: Option<String>) -> Answer {
    let mut answer = empty(StatusCode::OK);
    *answer.body_mut() = Events { first, ear, call, is_done: false }.boxed();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

struct Events {
    first: Option<Vec<u8>>,
    ear: Receiver<Said>,
    /// The id of the call that this answers.
    call: Option<String>,
    is_done: bool,
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
        match std::task::ready!(self.ear.poll_recv(cx)) {
            Some(Said::Before(line)) => event(&line),
            Some(Said::Answer(line)) => {
                self.is_done = true;
                event(&line)
            }
            None => {
                self.is_done = true;
                match self.call.take() {
                    Some(id) => event(&error(Some(&id), INTERNAL, UNKNOWN)),
                    None => Poll::Ready(None),
                }
            }
        }
    }
}

fn event(line: &[u8]) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    // A carriage return would end the field; in JSON it is mere space.
    let data = line.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte });
    let event = b"event: message\ndata: ".iter().copied().chain(data).chain(*b"\n\n").collect::<Vec<u8>>();
    Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
}

pub(crate) const INVALID: i32 = -32600;
pub(crate) const INTERNAL: i32 = -32603;
pub(crate) const UNKNOWN: &str = "The stdio server ended during this call. The outcome is unknown; the call was not \
    repeated. Next: open a new session, and look before calling again.";
