//! A bare hyper relay: what forwarding costs when nothing is checked, counted or translated.
//!
//! `bare-relay UPSTREAM` prints its address on the first line of stdout, and relays until it is killed.

use std::convert::Infallible;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kit::tasks::Tasks;
use tokio::net::TcpListener;

type Pool = Client<HttpConnector, Incoming>;
type Body = BoxBody<Bytes, hyper::Error>;

fn main() -> anyhow::Result<()> {
    let upstream = std::env::args().nth(1).context("usage: bare-relay UPSTREAM")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(upstream))
}

async fn serve(upstream: String) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let pool = pool();
    let tasks = Tasks::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (pool, upstream) = (pool.clone(), upstream.clone());
        tasks.start(async move {
            let service = service_fn(move |request| relay(pool.clone(), upstream.clone(), request));
            // A connection that breaks is the peer's affair, and shows in its figures.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn relay(pool: Pool, upstream: String, mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let Ok(target) = Uri::builder().scheme("http").authority(upstream).path_and_query(path).build() else {
        return Ok(bare(StatusCode::BAD_REQUEST));
    };
    *request.uri_mut() = target;
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().remove(HOST);
    request.headers_mut().remove(CONNECTION);
    Ok(match pool.request(request).await {
        Ok(mut response) => {
            response.headers_mut().remove(CONNECTION);
            response.map(BodyExt::boxed)
        }
        Err(_) => bare(StatusCode::BAD_GATEWAY),
    })
}

fn pool() -> Pool {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(1024)
        .build(connector)
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(|never: Infallible| match never {}).boxed());
    *response.status_mut() = status;
    response
}
