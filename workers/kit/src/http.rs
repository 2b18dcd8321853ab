//! A worker behind the edge: MCP over HTTP/1.1 on a loopback socket.
//!
//! It believes only its parent: every request must carry the internal secret of this start, which is compared before
//! anything else is looked at, and only beside it is a tenant believed. No session is ever made here; public sessions
//! are the edge's. An answer is JSON, or an event stream when the tool reports progress. A client that goes away cancels
//! its call; the edge stays on the line where a client's era says that leaving is no cancellation.

mod front;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::Secret;
use crate::tasks::Tasks;
use crate::worker::Worker;

/// How much one worker takes on, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Open connections; more wait in the kernel's backlog.
    pub connections: usize,
    /// Calls that run at once.
    pub calls: usize,
    /// How long a connection may stay without a whole request head. Also the longest idle time of a kept connection, so
    /// it is longer than the edge keeps one in its pool.
    pub head: Duration,
    /// How long a body may take.
    pub read: Duration,
    /// How long running calls may go on after the stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The edge takes 8 MiB; the slack is for what it may add.
            body: (8 << 20) + (64 << 10),
            connections: 512,
            calls: 512,
            head: Duration::from_secs(120),
            read: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// Serves `worker` until `stop` resolves, then lets running calls end.
///
/// # Errors
/// When the listener is not on a loopback address or cannot be used. A failing connection ends itself alone.
pub async fn serve(
    listener: std::net::TcpListener,
    secret: Secret,
    worker: Arc<dyn Worker>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let front = front::Front::new(worker, secret, &limits);
    let answer = move |request| {
        let front = front.clone();
        async move { front.answer(request).await }
    };
    serve_answers(listener, &limits, answer, stop).await
}

/// Serves what `answer` answers, for a worker that speaks MCP by itself; the token is its own to ask for with [`shows`].
///
/// # Errors
/// When the listener is not on a loopback address or cannot be used. A failing connection ends itself alone.
pub async fn serve_answers<A, F, B>(
    listener: std::net::TcpListener,
    limits: &Limits,
    answer: A,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a worker listens on a loopback address alone"));
    }
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(limits.connections));
    let connections = Tasks::new();
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        // The slot is taken before accept: at capacity, peers wait in the kernel's backlog and not in our memory.
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, _)| (slot, stream))
        };
        let (slot, stream) = tokio::select! {
            () = &mut stop => break,
            accepted = accepted => match accepted {
                Ok(accepted) => accepted,
                Err(fault) => {
                    // Out of descriptors, or a peer that is gone already: neither may spin nor end the worker.
                    tracing::warn!(%fault, "a connection could not be accepted");
                    tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let answer = answer.clone();
        let answer = service_fn(move |request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_headers(MOST_HEADERS)
            .max_buf_size(MOST_HEAD_BYTES)
            .keep_alive(true)
            .half_close(false)
            .serve_connection(TokioIo::new(stream), answer);
        let connection = graceful.watch(connection);
        connections.start(async move {
            let _slot = slot;
            if let Err(fault) = connection.await {
                tracing::debug!(%fault, "a connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("calls were still running at the end of the drain");
    }
    connections.abort();
    connections.drained().await;
    Ok(())
}

/// Whether a request shows the secret as its one bearer, in time that does not depend on how much of it was right.
#[must_use]
pub fn shows(headers: &HeaderMap, secret: &Secret) -> bool {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (given.next(), given.next()) else { return false };
    let Some((scheme, token)) = only.to_str().ok().and_then(|value| value.split_once(' ')) else { return false };
    // Two empty texts are equal too, and a secret that was lost on the way must open nothing.
    scheme.eq_ignore_ascii_case("bearer")
        && !token.is_empty()
        && verify_slices_are_equal(token.as_bytes(), secret.expose().as_bytes()).is_ok()
}

const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);
/// The edge sends fewer than twenty.
const MOST_HEADERS: usize = 64;
const MOST_HEAD_BYTES: usize = 64 << 10;
