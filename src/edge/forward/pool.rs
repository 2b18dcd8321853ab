//! Kept connections to one worker.
//!
//! HTTP/1.1 over hyper's own connection and nothing between: no layer here ever sends a request a second time. A worker
//! that was seen to close right after an answer is not trusted with kept connections until one has outlived its pause.
//!
//! What a worker says while its connection rests belongs to no request, so such a connection is dropped before the next
//! one is sent. What it says behind that can not be told from the answer: a worker that answers twice, and does it so
//! late, is believed once too often, and only its own tenants hear it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kit::tasks::Tasks;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::edge::Cause;
use crate::edge::config::Answers;
use crate::worker::Loopback;

use super::carried::Carried;
use super::leave::{Answered, Answering};
use super::line::{Ear, Line};

pub(super) struct Pool {
    address: Loopback,
    most: usize,
    keep: Duration,
    tasks: Tasks,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    resting: Vec<Resting>,
    /// When the worker was last seen to close a connection right after an answer.
    struck: Option<Instant>,
}

struct Resting {
    sender: SendRequest<Carried>,
    line: Ear,
    rest: Rest,
    since: Instant,
}

/// Since when a connection rests, for the task that drives it.
type Rest = Arc<Mutex<Option<Instant>>>;

/// One connection, for one exchange at a time.
pub(super) struct Wire {
    sender: SendRequest<Carried>,
    line: Ear,
    rest: Rest,
    /// For one that has rested: how long another may take to come about in its place.
    again: Option<Duration>,
    pool: Arc<Pool>,
}

impl Pool {
    pub(super) fn new(address: Loopback, limits: &Answers, tasks: Tasks) -> Self {
        let Answers { most_pooled, pool_idle, .. } = *limits;
        Self { address, most: most_pooled, keep: pool_idle, tasks, state: Arc::default() }
    }

    /// A kept connection, or a new one.
    pub(super) async fn wire(self: &Arc<Self>, connect: Duration) -> Result<Wire, Cause> {
        while let Some(Resting { mut sender, line, rest, since }) = self.take() {
            // The last answer is complete, so this waits for nothing but the task that drives the connection.
            let ready = matches!(timeout(READY, sender.ready()).await, Ok(Ok(())));
            // That task learns of bytes and of the end only when it is woken, which may be behind the next request.
            if ready && line.is_silent() {
                return Ok(Wire { sender, line, rest, again: Some(connect), pool: Arc::clone(self) });
            }
            let now = kit::clock::now();
            if now.duration_since(since) < QUICK {
                self.state.lock().unwrap_or_else(PoisonError::into_inner).struck = Some(now);
            }
        }
        self.dial(connect).await
    }

    /// Kept connections.
    pub(super) fn resting(&self) -> usize {
        let now = kit::clock::now();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |resting: &&Resting| now.duration_since(resting.since) < self.keep && !resting.sender.is_closed();
        state.resting.iter().filter(is_kept).count()
    }

    fn take(&self) -> Option<Resting> {
        let now = kit::clock::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = self.keep;
        state.resting.retain(|resting| now.duration_since(resting.since) < keep && !resting.sender.is_closed());
        let doubtful = state.struck.is_some();
        let at = state.resting.iter().rposition(|resting| !doubtful || now.duration_since(resting.since) >= QUICK)?;
        // Whichever this is, it has outlived the pause in which the worker closed the others.
        state.struck = None;
        let resting = state.resting.swap_remove(at);
        *resting.rest.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Some(resting)
    }

    async fn dial(self: &Arc<Self>, connect: Duration) -> Result<Wire, Cause> {
        let unreachable = |fault: &dyn std::fmt::Display| {
            tracing::warn!(worker = %self.address, %fault, "the worker cannot be reached");
            Cause::NotSent
        };
        let stream = timeout(connect, TcpStream::connect(self.address.socket()))
            .await
            .map_err(|late| unreachable(&late))?
            .map_err(|fault| unreachable(&fault))?;
        // Requests are written whole; waiting for more to send only delays them.
        stream.set_nodelay(true).map_err(|fault| unreachable(&fault))?;
        let line = Line::new(stream);
        let ear = line.ear();
        let (sender, connection) = http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER)
            .handshake::<_, Carried>(TokioIo::new(line))
            .await
            .map_err(|fault| unreachable(&fault))?;
        let rest = Rest::default();
        let (state, watched) = (Arc::clone(&self.state), Arc::clone(&rest));
        self.tasks.start(async move {
            // How a connection ends is told by the exchange that was on it.
            let _ = connection.await;
            let since = *watched.lock().unwrap_or_else(PoisonError::into_inner);
            let now = kit::clock::now();
            if since.is_some_and(|since| now.duration_since(since) < QUICK) {
                state.lock().unwrap_or_else(PoisonError::into_inner).struck = Some(now);
            }
        });
        Ok(Wire { sender, line: ear, rest, again: None, pool: Arc::clone(self) })
    }
}

impl Wire {
    /// Sends the request, once, and waits so long for the head of its answer.
    pub(super) fn send(mut self, request: Request<Carried>, wait: Duration) -> Answering {
        Box::pin(async move {
            match timeout(wait, self.sender.try_send_request(request)).await {
                Err(_late) => Err(Cause::Timeout { after: wait }),
                Ok(Ok(response)) => Ok(Answered::new(response, self)),
                Ok(Err(mut fault)) => {
                    if self.again.is_some() {
                        self.pool.state.lock().unwrap_or_else(PoisonError::into_inner).struck = Some(kit::clock::now());
                    }
                    // Only hyper's giving the request back proves that no byte of it was written.
                    let unsent = fault.take_message();
                    let error = fault.into_error();
                    tracing::warn!(worker = %self.pool.address, fault = %error, unsent = unsent.is_some(), "the exchange broke off");
                    match (unsent, self.again) {
                        // The worker closed while the connection rested. This is the first time that anything is sent.
                        (Some(request), Some(connect)) => self.pool.dial(connect).await?.send(request, wait).await,
                        (Some(_), None) => Err(Cause::NotSent),
                        (None, _) => Err(Cause::Broken),
                    }
                }
            }
        })
    }

    /// Gives the connection back after a complete answer.
    pub(super) fn rest(self) {
        let now = kit::clock::now();
        let mut state = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        let doubtful = state.struck.is_some_and(|struck| now.duration_since(struck) < DOUBT);
        if doubtful || state.resting.len() >= self.pool.most || self.sender.is_closed() {
            return;
        }
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        state.resting.push(Resting { sender: self.sender, line: self.line, rest: self.rest, since: now });
    }
}

/// A connection that ends so soon after an answer was closed because of it.
const QUICK: Duration = Duration::from_secs(1);

/// How long a worker that does so gets a fresh connection for each exchange.
const DOUBT: Duration = Duration::from_secs(60);

const READY: Duration = Duration::from_millis(100);

/// A worker's head is ours to bound too.
const MOST_HEADERS: usize = 64;
const BUFFER: usize = 64 * 1024;
