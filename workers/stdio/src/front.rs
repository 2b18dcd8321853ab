//! What stands between a connection and a session: the token, the bounds of a body, the rules of the transport.

mod modern;

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use kit::Secret;

use crate::Limits;
use crate::call::{Call, Unbegun};
use crate::era::FIRST_MODERN;
use crate::frame::{Frame, Kind};
use crate::outlet::{End, Said, outlet};
use crate::reply::{Answer, aside, empty, events, json, later, refusal, refuse, unanswered};
use crate::router::Busy;
use crate::server::Server;
use crate::shared::{Absent, Shared};
use crate::splice::Splice;
use crate::table::{Opening, Table, Unopened};
use crate::words::{self, CANCELLED, INVALID, LISTEN, METHOD_NOT_FOUND, PROGRESS, UNSUPPORTED_VERSION};

/// Answers requests; clones are the same.
#[derive(Clone)]
pub(crate) struct Front {
    table: Arc<Table>,
    shared: Arc<Shared>,
    secret: Arc<Secret>,
    limits: Arc<Limits>,
}

impl Front {
    pub(crate) fn new(table: Arc<Table>, shared: Arc<Shared>, secret: Secret, limits: Limits) -> Self {
        Self { table, shared, secret: Arc::new(secret), limits: Arc::new(limits) }
    }

    /// Dropping the future leaves the call: in a session the child goes on, without one it is told.
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
            let body =
                match tokio::time::timeout(self.limits.http.read, Limited::new(body, self.limits.http.body).collect())
                    .await
                {
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
            return method_not_allowed("POST, GET, DELETE", "POST, GET and DELETE are served");
        }
        if modern::names(&head.headers) {
            return method_not_allowed("POST", "this revision has no sessions");
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
        let (mouth, ear) = outlet(session.line);
        if session.router().open_stream(mouth) {
            aside(ear)
        } else {
            refuse(StatusCode::CONFLICT, "this session's stream is open already")
        }
    }

    async fn post(&self, head: &Parts, body: &[u8]) -> Answer {
        let Some((text, (frame, kind))) =
            std::str::from_utf8(body).ok().and_then(|text| Some((text, Frame::read(text)?)))
        else {
            return refuse(StatusCode::BAD_REQUEST, "the body is not one JSON-RPC message; batches are not served");
        };
        if modern::is(&head.headers, &frame) {
            return self.without_session(head, text, &frame, kind).await;
        }
        if kind == Kind::Request && frame.method() == "initialize" && !head.headers.contains_key(SESSION) {
            return self.initialize(text, &frame).await;
        }
        let session = match self.session(head) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        if kind == Kind::Request {
            return match self.exchange(&session, text, &frame, Some(self.limits.call)).await {
                Outcome::Answered(line) => json(StatusCode::OK, line),
                Outcome::Streams(answer) | Outcome::Refused(answer) | Outcome::Lost(answer) => answer,
            };
        }
        let mut splice = Splice::new(text);
        let cancelled = if frame.method() == CANCELLED {
            // The child knows the call by our number. One that is not running is nothing to it.
            let meant = frame.param("requestId").and_then(|id| Some((id, session.router().meant(id)?)));
            let Some((id, key)) = meant else { return empty(StatusCode::ACCEPTED) };
            splice.replace(id, key.to_string());
            Some(key)
        } else {
            None
        };
        if !session.say(splice.line()).await {
            return refuse(StatusCode::BAD_GATEWAY, "the stdio server has ended or does not read; nothing was said");
        }
        // No answer comes to a cancelled call, so whoever still waits is let go.
        if let Some(mouth) = cancelled.and_then(|key| session.router().forget(key)) {
            mouth.end(End::Cancelled);
        }
        empty(StatusCode::ACCEPTED)
    }

    async fn without_session(&self, head: &Parts, text: &str, frame: &Frame<'_>, kind: Kind) -> Answer {
        let server = match self.shared.server().await {
            Ok(server) => server,
            // Clients that know both eras take this one for a server of the older one, and go on with a session.
            Err(Absent::Sessions) => {
                let text = "this server needs a session: begin with initialize";
                return refusal(StatusCode::BAD_REQUEST, frame.id(), INVALID, text);
            }
            Err(Absent::Waiting(left)) => {
                let text = "the stdio server has ended lately and is left alone for a while; nothing was sent";
                return later(frame.id(), left.as_secs() + 1, text);
            }
            Err(Absent::Starting) => {
                return later(frame.id(), 5, "the stdio server is starting and has not answered yet; nothing was sent");
            }
        };
        if let Err(refused) = modern::check(&head.headers, frame, kind) {
            return *refused;
        }
        if kind == Kind::Notification {
            // These two name a call or its progress, and in this era a client cancels by leaving.
            if ![CANCELLED, PROGRESS].contains(&frame.method()) && !server.say(Splice::new(text).line()).await {
                return later(None, 1, "the stdio server has ended or does not read; nothing was said");
            }
            return empty(StatusCode::ACCEPTED);
        }
        let longest = (frame.method() != LISTEN).then_some(self.limits.call);
        match self.exchange(&server, text, frame, longest).await {
            Outcome::Answered(line) => {
                let read = std::str::from_utf8(&line).ok().and_then(Frame::read);
                let status = read.map_or(StatusCode::OK, |(answer, _)| modern::status(&answer));
                json(status, line)
            }
            Outcome::Streams(answer) | Outcome::Refused(answer) | Outcome::Lost(answer) => answer,
        }
    }

    /// Starts a child and asks it to begin; its session is there once it has said that it does.
    async fn initialize(&self, text: &str, frame: &Frame<'_>) -> Answer {
        let opening = match self.table.start().await {
            Ok(opening) => opening,
            Err(Unopened::Full) => return later(frame.id(), 5, "every session is taken; nothing was opened"),
            Err(Unopened::Waiting(left)) => {
                return later(frame.id(), left.as_secs() + 1, "the stdio server failed lately and is left alone");
            }
            Err(Unopened::NotStarted(fault)) => {
                tracing::error!(%fault, "a stdio server cannot be started");
                return later(frame.id(), 1, "the stdio server cannot be started");
            }
        };
        match self.exchange(&opening.server, text, frame, Some(self.limits.open)).await {
            Outcome::Answered(line) => {
                let read = std::str::from_utf8(&line).ok().and_then(Frame::read);
                let code = read.as_ref().and_then(|(answer, _)| answer.code());
                if code.is_none() {
                    return self.opened(opening, json(StatusCode::OK, line));
                }
                drop(opening);
                let is_unknown = [METHOD_NOT_FOUND, UNSUPPORTED_VERSION].iter().any(|no| code == Some(i64::from(*no)));
                if is_unknown && self.shared.is_modern().await {
                    return sessionless(frame);
                }
                json(StatusCode::OK, line)
            }
            Outcome::Streams(answer) => self.opened(opening, answer),
            Outcome::Refused(answer) => answer,
            Outcome::Lost(_) => {
                let pause = self.table.failed();
                tracing::error!(server = opening.server.name, ?pause, "a stdio server ended before it answered");
                later(frame.id(), pause.as_secs() + 1, "the stdio server ended before it answered; nothing was opened")
            }
        }
    }

    fn opened(&self, opening: Opening, mut answer: Answer) -> Answer {
        if let Ok(id) = HeaderValue::from_str(&opening.id) {
            answer.headers_mut().insert(SESSION, id);
        }
        self.table.keep(opening);
        answer
    }

    /// One request, and the beginning of what comes of it.
    async fn exchange(
        &self,
        server: &Arc<Server>,
        text: &str,
        frame: &Frame<'_>,
        longest: Option<Duration>,
    ) -> Outcome {
        let mut call = match Call::begin(server, text, frame, longest).await {
            Ok(call) => call,
            Err(Unbegun::Busy(busy)) => return Outcome::Refused(busy_with(busy, frame.id())),
            Err(Unbegun::Unsent) => return Outcome::Lost(unanswered(frame.id().unwrap_or("null"), End::Died)),
        };
        match call.next().await {
            Ok(Said::Answer(line)) => Outcome::Answered(line),
            Ok(Said::Before(line)) => Outcome::Streams(events(line, call)),
            Err(End::Died) => Outcome::Lost(unanswered(&call.id, End::Died)),
            Err(end) => Outcome::Refused(unanswered(&call.id, end)),
        }
    }

    fn session(&self, head: &Parts) -> Result<Arc<Server>, Box<Answer>> {
        let Some(id) = head.headers.get(SESSION) else {
            let text = "no session is named: begin with initialize, then send its Mcp-Session-Id";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, text)));
        };
        id.to_str().ok().and_then(|id| self.table.find(id)).ok_or_else(|| Box::new(gone()))
    }
}

/// What came of a request.
enum Outcome {
    Answered(Vec<u8>),
    Streams(Answer),
    Refused(Answer),
    /// The child ended.
    Lost(Answer),
}

fn busy_with(busy: Busy, id: Option<&str>) -> Answer {
    match busy {
        Busy::SameId => {
            let text = "a call with this id is running in this session; nothing was done. Next: use another id";
            refusal(StatusCode::BAD_REQUEST, id, INVALID, text)
        }
        Busy::Full => later(id, 1, "as many calls run as may; nothing was done"),
        Busy::Subscribed => later(id, 5, "as many subscriptions are open as may; nothing was done"),
        Busy::Ended => gone(),
    }
}

fn method_not_allowed(allow: &'static str, message: &str) -> Answer {
    let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, message);
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    answer
}

fn gone() -> Answer {
    refuse(StatusCode::NOT_FOUND, "there is no such session: it has ended. Next: initialize again")
}

/// To `initialize`, where the server knows requests without a session alone.
fn sessionless(frame: &Frame<'_>) -> Answer {
    let requested = frame.param("protocolVersion").unwrap_or("null");
    let data = format!(r#"{{"supported":["{FIRST_MODERN}"],"requested":{requested}}}"#);
    let text = "this server has no sessions: it answers server/discover and refuses initialize. Next: use a client that \
        speaks 2026-07-28";
    json(StatusCode::BAD_REQUEST, words::error(frame.id(), UNSUPPORTED_VERSION, text, Some(&data)))
}

/// Whether the host is absent or a loopback name, with or without a port.
fn is_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(name.map_or(host, |(name, _)| name), "localhost" | "127.0.0.1" | "[::1]")
}

const SESSION: &str = "mcp-session-id";
