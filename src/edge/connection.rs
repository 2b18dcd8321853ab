//! One client connection: its protocol, its limits and its clocks.
//!
//! hyper has no clock before it knows the protocol, none for a body and none for writing, so the connection has its
//! own: one watchdog for each, over what [`activity`] records. HTTP/1.1 and HTTP/2 are served by their own builders;
//! which one is decided by ALPN or by the first bytes, never by hyper's automatic detection.

mod activity;
mod ending;
mod enter;
mod sniff;
mod unread;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, HeaderName, PROXY_AUTHORIZATION};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use kit::tasks::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::ServiceBuilder;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use crate::edge::client::{Arrival, Client};
use crate::edge::config::Connections;
use crate::edge::newcomers::turned_away;
use crate::edge::{Meters, Path};

use activity::{Activity, Verdict, Watched};
use enter::Enter;
use unread::Leftovers;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// How connections are served: their limits, and where their requests go.
#[derive(Clone)]
pub(crate) struct Conversation {
    limits: Arc<Connections>,
    paths: watch::Receiver<Path>,
    stopping: watch::Receiver<bool>,
    meters: Meters,
}

impl Conversation {
    pub(crate) fn new(
        limits: &Connections,
        paths: watch::Receiver<Path>,
        stopping: watch::Receiver<bool>,
        meters: Meters,
    ) -> Self {
        Self { limits: Arc::new(limits.clone()), paths, stopping, meters }
    }

    /// Serves a connection to its end; its protocol is known by ALPN or read off the first bytes.
    pub(crate) async fn serve<S>(&self, stream: S, arrival: Arrival, protocol: Option<Protocol>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        serve(stream, arrival, protocol, self.clone()).await;
    }
}

async fn serve<S>(stream: S, arrival: Arrival, protocol: Option<Protocol>, conversation: Conversation)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Conversation { limits, paths, mut stopping, meters } = conversation;
    let client = arrival.client;
    let limits = &*limits;
    let activity = Arc::new(Activity::new());
    let io = Watched::new(stream, Arc::clone(&activity));
    let sniffed = tokio::select! {
        biased;
        () = turned_away(&mut stopping, limits.newcomers) => return,
        sniffed = timeout(limits.head, sniff::protocol(io, protocol)) => sniffed,
    };
    let Ok(Ok((io, protocol))) = sniffed else {
        tracing::debug!(%client, "a connection ended before it said what it speaks");
        return;
    };
    let service =
        |leftovers| {
            let service = ServiceBuilder::new().layer(SetSensitiveRequestHeadersLayer::new(SENSITIVE)).service(
                Enter::new((arrival, &limits.proxies), paths, Arc::clone(&activity), meters.clone(), leftovers),
            );
            TowerToHyperService::new(service)
        };
    let io = TokioIo::new(io);
    match protocol {
        Protocol::Http1 => {
            let goes_on = !*stopping.borrow();
            let served = http1(limits).keep_alive(goes_on).serve_connection(io, service(None));
            watch(served, (client, &meters), limits, &activity, stopping).await;
        }
        Protocol::Http2 => {
            activity.multiplexed();
            let streams = Streams(Tasks::new());
            let service = service(Some(Leftovers::new(streams.0.clone())));
            let served = http2(limits, InTasks(streams.0.clone())).serve_connection(io, service);
            watch(served, (client, &meters), limits, &activity, stopping).await;
        }
    }
}

fn http1(limits: &Connections) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Ours runs from the first byte of a head and leaves a resting connection to its own, longer clock.
        .header_read_timeout(None)
        .max_headers(limits.most_headers)
        .max_header_size(limits.most_head_bytes)
        .max_buf_size(limits.most_head_bytes.max(SMALLEST_BUFFER))
        // A client that has closed its side is gone; waiting for it would hold its slot.
        .half_close(false)
        .ignore_invalid_headers(false);
    builder
}

fn http2(limits: &Connections, streams: InTasks) -> http2::Builder<InTasks> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.most_streams)
        // Twice what a request may have: up to there the limits answer in a way that clients understand.
        .max_header_list_size(u32::try_from(limits.most_head_bytes.saturating_mul(2)).unwrap_or(u32::MAX))
        // What a client may send ahead of our reading: a stream's worth each, and not all streams at once.
        .initial_stream_window_size(64 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .adaptive_window(false)
        .max_frame_size(16 * 1024)
        .max_send_buf_size(64 * 1024)
        // Rapid resets, from either side, end the connection instead of piling up work.
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(1024)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(5));
    builder
}

/// Drives a connection under its clocks; on stop lets it finish what it has begun.
async fn watch<C: Served>(
    served: C,
    (client, meters): (Client, &Meters),
    limits: &Connections,
    activity: &Activity,
    mut stopping: watch::Receiver<bool>,
) {
    let mut served = std::pin::pin!(served);
    let (mut begun, mut told) = (false, false);
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            // Before an answer that comes at the same time, which then says that the connection ends with it.
            _ = stopping.wait_for(|stopping| *stopping), if begun && !told => {
                if activity.is_resting() && !activity.is_multiplexed() {
                    return;
                }
                told = true;
                served.as_mut().finish();
            }
            ended = served.as_mut() => {
                if let Err(fault) = ended {
                    if fault.is_parse() {
                        // hyper has answered, and no request's line says so.
                        let status = if fault.is_parse_too_large() { 431 } else { 400 };
                        tracing::info!(%client, status, outcome = "invalid", "answered");
                        meters.unreadable();
                    }
                    tracing::debug!(%fault, "a connection ended with a fault");
                }
                return;
            }
            // hyper drops what it has not looked at yet when it is asked to end.
            () = ready(()), if !begun => begun = true,
            () = sleep(wait) => match activity.verdict(kit::clock::now(), limits) {
                Verdict::Wait(longer) => wait = longer,
                Verdict::End(reason) => {
                    tracing::debug!(reason, "a connection was cut");
                    return;
                }
            },
        }
    }
}

/// A connection that can be asked to end after what is under way.
trait Served: Future<Output = Result<(), hyper::Error>> {
    fn finish(self: Pin<&mut Self>);
}

impl<I, B, S> Served for http1::Connection<I, S>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: http_body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, B, S, E> Served for http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: http_body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// The streams of one HTTP/2 connection end with it. They refer to their own group, so the end is told to them and not
/// left to the last reference.
struct Streams(Tasks);

impl Drop for Streams {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the streams of one HTTP/2 connection in a group of its own.
#[derive(Clone)]
struct InTasks(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for InTasks {
    fn execute(&self, stream: F) {
        self.0.start(stream);
    }
}

/// These are never printed, whoever prints a request.
const SENSITIVE: [HeaderName; 4] =
    [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HeaderName::from_static("mcp-session-id")];

/// hyper's own least.
const SMALLEST_BUFFER: usize = 8192;
