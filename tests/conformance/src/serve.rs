//! The loopback door: who has the bearer reaches the library's HTTP service.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use kit::Secret;
use kit::tasks::Tasks;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::worker::{Shared, Worker};

type Service = StreamableHttpService<Worker, LocalSessionManager>;

pub(crate) async fn serve(listener: &TcpListener, bearer: Option<Secret>) -> io::Result<()> {
    let shared = Arc::new(Shared::new());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"])
        .with_max_request_body_bytes(MOST_BODY_BYTES);
    let make = move || Ok(Worker::new(Arc::clone(&shared)));
    let service: Arc<Service> = Arc::new(StreamableHttpService::new(make, Arc::default(), config));
    let bearer = Arc::new(bearer);
    let tasks = Tasks::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (service, bearer) = (Arc::clone(&service), Arc::clone(&bearer));
        let answer = service_fn(move |request| {
            let (service, bearer) = (Arc::clone(&service), Arc::clone(&bearer));
            async move { Ok::<_, Infallible>(answer(&service, bearer.as_ref().as_ref(), request).await) }
        });
        tasks.start(async move {
            // A client that goes away in mid-exchange is its own affair.
            let _ = http1::Builder::new().serve_connection(Stream::new(stream), answer).await;
        });
    }
}

async fn answer(
    service: &Service,
    bearer: Option<&Secret>,
    request: Request<Incoming>,
) -> Response<BoxBody<Bytes, Infallible>> {
    if bearer.is_none_or(|bearer| presents(&request, bearer)) {
        return service.handle(request).await;
    }
    let mut refusal = Response::new(Full::new(Bytes::from_static(b"a bearer is wanted\n")).boxed());
    *refusal.status_mut() = StatusCode::UNAUTHORIZED;
    refusal
}

fn presents(request: &Request<Incoming>, bearer: &Secret) -> bool {
    let presented =
        request.headers().get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    presented.is_some_and(|presented| verify_slices_are_equal(presented, bearer.expose().as_bytes()).is_ok())
}

type Stream = hyper_util::rt::TokioIo<tokio::net::TcpStream>;

/// More than the edge lets through, so that it is the edge's limit which shows.
const MOST_BODY_BYTES: usize = 16 << 20;
