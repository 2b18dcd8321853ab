//! One question to a worker, on a connection of its own.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kit::header::BARRED;
use kit::sse::Reader;
use kit::{Secret, Tenant};
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
    #[error("it answers {0}{1}")]
    Unwell(StatusCode, Said),
    #[error("its answer is too large")]
    TooLarge,
    #[error("its token or its session id cannot stand in a header")]
    Header,
    #[error("it speaks no era of the protocol: neither server/discover nor initialize gives a result ({0})")]
    NoEra(StatusCode),
}

/// What an answer tells a person about a fault: bounded, in one line.
#[derive(Debug)]
pub struct Said(Option<String>);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |text| write!(f, " and says: {text}"))
    }
}

/// A question's text, and what its head says beside it.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) body: Bytes,
    /// Its method, where it is of the modern era.
    pub(crate) modern: Option<&'static str>,
    pub(crate) version: Option<HeaderValue>,
    pub(crate) session: Option<HeaderValue>,
}

/// The token that is shown with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Own,
    Other(Secret),
    None,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) session: Option<HeaderValue>,
    /// What it says: one text, or the events of a stream.
    messages: Vec<Vec<u8>>,
}

impl Question {
    fn new(body: &'static str, modern: Option<&'static str>) -> Self {
        let version = modern.map(|_| HeaderValue::from_static("2026-07-28"));
        Self { body: Bytes::from_static(body.as_bytes()), modern, version, session: None }
    }

    pub(crate) fn discover() -> Self {
        Self::new(DISCOVER, Some("server/discover"))
    }

    pub(crate) fn initialize() -> Self {
        Self::new(INITIALIZE, None)
    }
}

impl Answer {
    /// How much of a worker's was read for it.
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(Vec::len).sum()
    }

    fn said(&self, bearer: &Secret) -> Said {
        #[derive(serde::Deserialize)]
        struct Whole {
            error: Told,
        }
        #[derive(serde::Deserialize)]
        struct Told {
            message: String,
        }
        let whole = || self.messages.first().map(|text| String::from_utf8_lossy(text).into_owned());
        let text = self.message::<Whole>().map(|whole| whole.error.message).or_else(whole).unwrap_or_default();
        // A worker may repeat the head that it was asked with.
        let text = text.replace(bearer.expose(), "…");
        let text = text.trim().chars().take(MOST_SAID).flat_map(|char| {
            let is_escaped = !matches!(char, '"' | '\'');
            is_escaped.then(|| char.escape_debug()).into_iter().flatten().chain((!is_escaped).then_some(char))
        });
        Said(Some(text.collect()).filter(|text: &String| !text.is_empty()))
    }

    /// The message in it that has this form.
    pub(crate) fn message<T: DeserializeOwned>(&self) -> Option<T> {
        self.messages.iter().find_map(|message| serde_json::from_slice(message).ok())
    }
}

/// Asks as the edge does, whom the worker must let in.
pub(crate) async fn ask(worker: &Upstream, question: Question, patience: Duration) -> Result<Answer, ProbeFault> {
    let answer = ask_as(worker, question, &Shown::Own, patience).await?;
    match answer.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ProbeFault::Refused(answer.status)),
        // Anything a client might have done wrong is an answer: that this era is not spoken.
        status if status.is_server_error() => Err(ProbeFault::Unwell(status, answer.said(&worker.bearer))),
        _ => Ok(answer),
    }
}

/// Asks with this token, whatever comes of it.
pub(crate) async fn ask_as(
    worker: &Upstream,
    question: Question,
    shown: &Shown,
    patience: Duration,
) -> Result<Answer, ProbeFault> {
    let mut headers = addressed(worker, shown)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let Question { body, modern, version, session } = question;
    let modern = modern.map(HeaderValue::from_static);
    for (name, value) in [(METHOD, modern), (VERSION, version), (SESSION, session)] {
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    let asked = timeout(patience, exchange(worker, (Method::POST, worker.terms.path.uri()), headers, body));
    asked.await.map_err(|_late| ProbeFault::Late(patience))?
}

/// Asks our own worker whom it refuses everything.
pub(crate) async fn barred(worker: &Upstream, patience: Duration) -> Result<Vec<Tenant>, ProbeFault> {
    #[derive(serde::Deserialize)]
    struct Barred {
        tenants: Vec<Tenant>,
    }
    let headers = addressed(worker, &Shown::Own)?;
    let asked = timeout(patience, exchange(worker, (Method::GET, Uri::from_static(BARRED)), headers, Bytes::new()));
    let answer = asked.await.map_err(|_late| ProbeFault::Late(patience))??;
    let barred: Option<Barred> = answer.message().filter(|_| answer.status == StatusCode::OK);
    barred.map(|barred| barred.tenants).ok_or_else(|| ProbeFault::Unwell(answer.status, answer.said(&worker.bearer)))
}

/// Ends a session that a question has opened. A worker that does not end sessions forgets it in its own time.
pub(crate) async fn end(worker: &Upstream, session: HeaderValue, version: &str, patience: Duration) {
    let Ok(mut headers) = addressed(worker, &Shown::Own) else { return };
    headers.insert(SESSION, session);
    if let Ok(version) = HeaderValue::from_str(version) {
        headers.insert(VERSION, version);
    }
    let ended =
        timeout(patience, exchange(worker, (Method::DELETE, worker.terms.path.uri()), headers, Bytes::new())).await;
    if !matches!(ended, Ok(Ok(_))) {
        tracing::debug!(worker = worker.label(), "a probe's session could not be ended");
    }
}

fn addressed(worker: &Upstream, shown: &Shown) -> Result<HeaderMap, ProbeFault> {
    let value = |text: String| HeaderValue::from_str(&text).map_err(|_invalid| ProbeFault::Header);
    let mut headers = HeaderMap::new();
    headers.insert(HOST, value(worker.address.to_string())?);
    let token = match shown {
        Shown::Own => &worker.bearer,
        Shown::Other(token) => token,
        Shown::None => return Ok(headers),
    };
    let mut bearer = value(format!("Bearer {}", token.expose()))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    Ok(headers)
}

async fn exchange(
    worker: &Upstream,
    (method, uri): (Method, Uri),
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, ProbeFault> {
    let stream = TcpStream::connect(worker.address.socket()).await.map_err(ProbeFault::Unreachable)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(ProbeFault::Broken)?;
    let asked = async {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
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
        let session = parts.headers.get(SESSION).cloned();
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

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"playground-probe","version":"1"}}}}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"probe","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"playground-probe","version":"1"}}}"#;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const SESSION: &str = "mcp-session-id";

/// A sentence or two.
const MOST_SAID: usize = 300;

/// Instructions may be long, and a page of tools too.
const MOST_BYTES: usize = 1 << 20;
