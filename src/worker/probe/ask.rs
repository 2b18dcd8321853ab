//! One question to a worker, on a connection of its own.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kit::sse::Reader;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::worker::Upstream;

/// Why a worker could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFault {
    #[error("it cannot be reached")]
    Unreachable(#[source] std::io::Error),
    #[error("it did not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the exchange broke off")]
    Broken(#[source] hyper::Error),
    #[error("it refuses the token: {0}")]
    Refused(StatusCode),
    #[error("it answers {0}")]
    Unwell(StatusCode),
    #[error("its answer is too large")]
    TooLarge,
    #[error("its token or its session id cannot stand in a header")]
    Header,
    #[error("it speaks no era of the protocol: neither server/discover nor initialize gives a result ({0})")]
    NoEra(StatusCode),
}

/// A question's text, and whether it is of the modern era.
pub(super) struct Question {
    body: &'static str,
    modern: Option<&'static str>,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) session: Option<HeaderValue>,
    /// What it says: one text, or the events of a stream.
    messages: Vec<Vec<u8>>,
}

impl Answer {
    /// The message in it that has this form.
    pub(super) fn message<T: DeserializeOwned>(&self) -> Option<T> {
        self.messages.iter().find_map(|message| serde_json::from_slice(message).ok())
    }
}

pub(super) async fn ask(worker: &Upstream, question: Question, patience: Duration) -> Result<Answer, ProbeFault> {
    let mut headers = addressed(worker)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if let Some(method) = question.modern {
        headers.insert(VERSION, HeaderValue::from_static("2026-07-28"));
        headers.insert("mcp-method", HeaderValue::from_static(method));
    }
    let body = Bytes::from_static(question.body.as_bytes());
    let asked = timeout(patience, exchange(worker, Method::POST, headers, body));
    let answer = asked.await.map_err(|_late| ProbeFault::Late(patience))??;
    match answer.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ProbeFault::Refused(answer.status)),
        // Anything a client might have done wrong is an answer: that this era is not spoken.
        status if status.is_server_error() => Err(ProbeFault::Unwell(status)),
        _ => Ok(answer),
    }
}

/// Ends a session that a question has opened. A worker that does not end sessions forgets it in its own time.
pub(super) async fn end(worker: &Upstream, session: HeaderValue, version: &str, patience: Duration) {
    let Ok(mut headers) = addressed(worker) else { return };
    headers.insert("mcp-session-id", session);
    if let Ok(version) = HeaderValue::from_str(version) {
        headers.insert(VERSION, version);
    }
    let ended = timeout(patience, exchange(worker, Method::DELETE, headers, Bytes::new())).await;
    if !matches!(ended, Ok(Ok(_))) {
        tracing::debug!(worker = worker.name, "a probe's session could not be ended");
    }
}

fn addressed(worker: &Upstream) -> Result<HeaderMap, ProbeFault> {
    let value = |text: String| HeaderValue::from_str(&text).map_err(|_invalid| ProbeFault::Header);
    let mut headers = HeaderMap::new();
    headers.insert(HOST, value(worker.address.to_string())?);
    let mut bearer = value(format!("Bearer {}", worker.bearer.expose()))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    Ok(headers)
}

async fn exchange(worker: &Upstream, method: Method, headers: HeaderMap, body: Bytes) -> Result<Answer, ProbeFault> {
    let stream = TcpStream::connect(worker.address.socket()).await.map_err(ProbeFault::Unreachable)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(ProbeFault::Broken)?;
    let asked = async {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = worker.terms.path.uri();
        *request.headers_mut() = headers;
        let response = sender.send_request(request).await.map_err(ProbeFault::Broken)?;
        let (parts, mut body) = response.into_parts();
        let events = parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"));
        let (mut text, mut reader, mut messages): (_, _, Vec<Vec<u8>>) = (Vec::new(), Reader::new(), Vec::new());
        let mut left = MOST_BYTES;
        // A stream may stay open behind its answer.
        while !messages.iter().any(|message| is_response(message)) {
            let Some(frame) = body.frame().await else { break };
            let data = frame.map_err(ProbeFault::Broken)?.into_data().unwrap_or_default();
            left = left.checked_sub(data.len()).ok_or(ProbeFault::TooLarge)?;
            if events {
                reader.push(&data);
                messages.extend(std::iter::from_fn(|| reader.take()));
            } else {
                text.extend_from_slice(&data);
            }
        }
        if !events {
            messages.push(text);
        }
        let session = parts.headers.get("mcp-session-id").cloned();
        Ok(Answer { status: parts.status, session, messages })
    };
    tokio::select! {
        answer = asked => answer,
        // Driven beside it; how it ends is told by the exchange, which sees its end first.
        never = async {
            let _ = connection.await;
            std::future::pending::<Infallible>().await
        } => match never {},
    }
}

fn is_response(message: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Response {
        result: Option<serde::de::IgnoredAny>,
        error: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Response>(message).is_ok_and(|found| found.result.is_some() || found.error.is_some())
}

pub(super) const DISCOVER: Question = Question {
    body: r#"{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"playground-probe","version":"1"}}}}"#,
    modern: Some("server/discover"),
};

pub(super) const INITIALIZE: Question = Question {
    body: r#"{"jsonrpc":"2.0","id":"probe","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"playground-probe","version":"1"}}}"#,
    modern: None,
};

const VERSION: &str = "mcp-protocol-version";

/// Instructions may be long; tools are not asked for.
const MOST_BYTES: usize = 1 << 20;
