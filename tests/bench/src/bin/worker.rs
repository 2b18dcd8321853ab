//! The worker that every relay is measured in front of: MCP with one tool, whose answers cost next to nothing.
//!
//! It prints its address on the first line of stdout, and serves until it is killed.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kit::tasks::Tasks;
use serde_json::{Value, json};
use tokio::net::TcpListener;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve())
}

async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let tasks = Tasks::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tasks.start(async move {
            // A connection that breaks is the peer's affair, and shows in its figures.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

type Whole = BoxBody<Bytes, Infallible>;

async fn answer(request: Request<Incoming>) -> Result<Response<Whole>, Infallible> {
    if request.method() == Method::DELETE {
        return Ok(bare(StatusCode::NO_CONTENT));
    }
    if request.method() == Method::GET {
        return Ok(silent());
    }
    if request.method() != Method::POST {
        return Ok(bare(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else { return Ok(bare(StatusCode::BAD_REQUEST)) };
    let Ok(call) = serde_json::from_slice::<Value>(&body.to_bytes()) else { return Ok(bare(StatusCode::BAD_REQUEST)) };
    let (Some(id), Some(method)) = (call.get("id"), call.get("method").and_then(Value::as_str)) else {
        return Ok(bare(StatusCode::ACCEPTED));
    };
    let result = result(method, call.get("params").unwrap_or(&Value::Null));
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if method == "initialize" {
        response
            .headers_mut()
            .insert("mcp-session-id", HeaderValue::from_static("11111111-2222-4333-8444-555555555555"));
    }
    Ok(response)
}

fn result(method: &str, params: &Value) -> Value {
    match method {
        "initialize" => json!({
            "protocolVersion": params.get("protocolVersion").unwrap_or(&Value::Null),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fixed-worker", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "echo", "description": "Fixed text", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => {
            let asked = params.pointer("/arguments/answer").and_then(Value::as_u64).unwrap_or(200);
            let length = usize::try_from(asked).unwrap_or(0).min(16 << 20);
            json!({"content": [{"type": "text", "text": "x".repeat(length)}], "isError": false})
        }
        _ => json!({}),
    }
}

/// An event stream on which nothing is ever said.
fn silent() -> Response<Whole> {
    let mut response = Response::new(Silence.boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

fn bare(status: StatusCode) -> Response<Whole> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = status;
    response
}
