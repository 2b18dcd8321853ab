//! What stands between a connection and a session: the token, the bounds of a body, the rules of the transport.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use kit::Secret;
use tokio::sync::mpsc;

use crate::Limits;
use crate::frame::{Frame, Kind, as_line};
use crate::reply::{Answer, INTERNAL, INVALID, UNKNOWN, empty, events, json, refusal};
use crate::router::{Busy, Said};
use crate::session::Session;
use crate::table::{Opening, Table, Unopened};

/// Answers requests; clones are the same.
#[derive(Clone)]
pub(crate) struct Front {
    table: Arc<Table>,
    secret: Arc<Secret>,
    body: usize,
    read: Duration,
    call: Duration,
}

impl Front {
    pub(crate) fn new(table: Arc<Table>, secret: Secret, limits: &Limits) -> Self {
        let (body, read) = (limits.http.body, limits.http.read);
        Self { table, secret: Arc::new(secret), body, read, call: limits.call }
    }

    /// Dropping the future cancels nothing: the child answers, and the answer is dropped.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        if !kit::http::shows(request.headers(), &self.secret) {
            return refuse(StatusCode::UNAUTHORIZED, "this worker serves its edge alone");
        }
        let (head, body) = request.into_parts();
        if !matches!(head.uri.path(), "/" | "/mcp") {
            return refuse(StatusCode::NOT_FOUND, "MCP is served at /");
        }
        if head.headers.contains_key(header::ORIGIN) || !is_loopback(&head.headers) {
            return refuse(StatusCode::FORBIDDEN, "no browser has business here, and the host is a loopback name");
        }
        let method = head.method.clone();
        if method == Method::POST {
            let body = match tokio::time::timeout(self.read, Limited::new(body, self.body).collect()).await {
                Err(_elapsed) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
                Ok(Err(fault)) if fault.is::<LengthLimitError>() => {
                    return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
                }
                Ok(Err(_broken)) => return refuse(StatusCode::BAD_REQUEST, "the body ended early"),
                Ok(Ok(body)) => body.to_bytes(),
            };
            return self.post(&head, &body).await;
        }
        if method != Method::GET && method != Method::DELETE {
            let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, "POST, GET and DELETE are served");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            return answer;
        }
        let session = match self.session(&head) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        if method == Method::DELETE {
            let id = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
            self.table.remove(id);
            return empty(StatusCode::NO_CONTENT);
        }
        session.touch();
        let (mouth, ear) = mpsc::channel(QUEUED);
        if session.router().open_stream(mouth) {
            events(None, ear, None)
        } else {
            refuse(StatusCode::CONFLICT, "this session's stream is open already")
        }
    }

    async fn post(&self, head: &Parts, body: &[u8]) -> Answer {
        let Some((frame, kind)) = Frame::read(body) else {
            return refuse(StatusCode::BAD_REQUEST, "the body is not one JSON-RPC message; batches are not served");
        };
        let version = head.headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
        if version.is_some_and(|version| version >= MODERN) || frame.meta(VERSION).is_some() {
            let text = "this server needs a session: begin with initialize";
            return refusal(StatusCode::BAD_REQUEST, frame.id(), INVALID, text);
        }
        if kind == Kind::Request && frame.method() == "initialize" && !head.headers.contains_key(SESSION) {
            return self.initialize(&frame, body).await;
        }
        let session = match self.session(head) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        if kind == Kind::Request {
            return self.exchange(&session, &frame, body).await.0;
        }
        if !session.say(as_line(body)).await {
            return refuse(StatusCode::BAD_GATEWAY, "the stdio server has ended or does not read; nothing was said");
        }
        if frame.method() == "notifications/cancelled"
            && let Some(id) = frame.param("requestId")
        {
            // No answer comes to a cancelled call, so whoever still waits is let go.
            let mouth = session.router().forget(id);
            if let Some(mouth) = mouth {
                let said = refusal(StatusCode::OK, Some(id), CANCELLED, "the call was cancelled by its client");
                let Ok(said) = said.into_body().collect().await;
                let _ = mouth.try_send(Said::Answer(said.to_bytes().to_vec()));
            }
        }
        empty(StatusCode::ACCEPTED)
    }

    /// Starts a child and asks it to begin; its session is there once it has said that it does.
    async fn initialize(&self, frame: &Frame<'_>, body: &[u8]) -> Answer {
        let opening = match self.table.start() {
            Ok(opening) => opening,
            Err(Unopened::Full) => return later(frame.id(), 5, "every session is taken"),
            Err(Unopened::Waiting(left)) => {
                return later(frame.id(), left.as_secs() + 1, "the stdio server failed lately and is left alone");
            }
            Err(Unopened::NotStarted(fault)) => {
                tracing::error!(%fault, "a stdio server cannot be started");
                return later(frame.id(), 1, "the stdio server cannot be started");
            }
        };
        let (mut answer, outcome) = self.exchange(&opening.session, frame, body).await;
        match outcome {
            Outcome::Answered => {
                let Opening { id, .. } = &opening;
                if let Ok(id) = HeaderValue::from_str(id) {
                    answer.headers_mut().insert(SESSION, id);
                }
                self.table.keep(opening);
                answer
            }
            Outcome::Refused => answer,
            Outcome::Lost => {
                let pause = self.table.failed();
                tracing::error!(session = opening.session.name, ?pause, "a stdio server ended before it answered");
                later(frame.id(), pause.as_secs() + 1, "the stdio server ended before it answered; nothing was opened")
            }
        }
    }

    /// One request, and the beginning of what comes of it.
    async fn exchange(&self, session: &Session, frame: &Frame<'_>, body: &[u8]) -> (Answer, Outcome) {
        let Some(id) = frame.id() else {
            return (refuse(StatusCode::BAD_REQUEST, "a request has an id"), Outcome::Refused);
        };
        let (mouth, mut ear) = mpsc::channel(QUEUED);
        let begun = session.router().begin(id, frame.wanted_token(), mouth);
        if let Err(busy) = begun {
            let answer = match busy {
                Busy::SameId => {
                    let text = "a call with this id is running in this session; nothing was done. Next: use another id";
                    refusal(StatusCode::BAD_REQUEST, Some(id), INVALID, text)
                }
                Busy::Full => later(Some(id), 1, "as many calls run in this session as may; nothing was done"),
                Busy::Ended => gone(),
            };
            return (answer, Outcome::Refused);
        }
        if !session.say(as_line(body)).await {
            session.router().forget(id);
            return (refusal(StatusCode::BAD_GATEWAY, Some(id), INTERNAL, UNKNOWN), Outcome::Lost);
        }
        match tokio::time::timeout(self.call, ear.recv()).await {
            Ok(Some(Said::Answer(line))) => {
                let is_error = Frame::read(&line).is_some_and(|(answer, _)| answer.code().is_some());
                let outcome = if is_error { Outcome::Refused } else { Outcome::Answered };
                (json(StatusCode::OK, line), outcome)
            }
            Ok(Some(Said::Before(line))) => (events(Some(line), ear, Some(id.to_owned())), Outcome::Answered),
            Ok(None) => (refusal(StatusCode::BAD_GATEWAY, Some(id), INTERNAL, UNKNOWN), Outcome::Lost),
            Err(_elapsed) => {
                session.router().forget(id);
                let cancel = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
                );
                let _ = session.say(cancel.into_bytes()).await;
                let text = "the call took too long and was cancelled; its outcome is unknown, it was not repeated";
                (refusal(StatusCode::GATEWAY_TIMEOUT, Some(id), INTERNAL, text), Outcome::Refused)
            }
        }
    }

    fn session(&self, head: &Parts) -> Result<Arc<Session>, Box<Answer>> {
        let Some(id) = head.headers.get(SESSION) else {
            let text = "no session is named: begin with initialize, then send its Mcp-Session-Id";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, text)));
        };
        id.to_str().ok().and_then(|id| self.table.find(id)).ok_or_else(|| Box::new(gone()))
    }
}

/// What came of a request, for the one who opens a session with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    Refused,
    /// The child ended.
    Lost,
}

fn refuse(status: StatusCode, message: &str) -> Answer {
    refusal(status, None, INVALID, message)
}

fn gone() -> Answer {
    refuse(StatusCode::NOT_FOUND, "there is no such session: it has ended. Next: initialize again")
}

fn later(id: Option<&str>, seconds: u64, message: &str) -> Answer {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, id, INTERNAL, message);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// Whether the host is absent or a loopback name, with or without a port.
fn is_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(name.map_or(host, |(name, _)| name), "localhost" | "127.0.0.1" | "[::1]")
}

const SESSION: &str = "mcp-session-id";
const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CANCELLED: i32 = -32800;
/// A client that does not read holds its own session up, and not our memory.
const QUEUED: usize = 4;
