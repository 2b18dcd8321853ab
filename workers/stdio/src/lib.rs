//! A worker that puts any stdio MCP server on loopback HTTP, for an edge in front of it.
//!
//! `front` reads a request; `table` finds or opens the session that it belongs to; a `session` is one child process with
//! its `router`, which says whom each line of the child is for; `child` starts and ends processes; `frame` and `lines`
//! read what passes through. Every value of a message keeps its own bytes, ids first.
//!
//! The bridge never repeats a call: when a child dies, whoever waits is told at once that the outcome is unknown. A
//! client that leaves cancels nothing, as its era says; its answer is dropped. Requests of the 2026-07-28 era are refused
//! in words by which their clients fall back to a session.

mod child;
mod frame;
mod front;
mod lines;
mod reply;
mod router;
mod session;
mod table;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kit::Secret;

pub use child::Program;

/// How much one bridge takes on, and how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sessions, each with a child.
    pub sessions: usize,
    /// How long a session may stay unused.
    pub idle: Duration,
    /// Calls in flight in one session.
    pub calls: usize,
    /// How long a call may take.
    pub call: Duration,
    /// Bytes of one line of a child.
    pub line: usize,
    /// How long a child may leave its input unread while a line waits.
    pub write: Duration,
    /// How long a child may take to end after each request to.
    pub end: Duration,
    /// What the HTTP side takes.
    pub http: kit::http::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 64,
            idle: Duration::from_secs(30 * 60),
            calls: 64,
            call: Duration::from_secs(3600),
            // Twice what a client may send, since answers carry files and pictures.
            line: 16 << 20,
            write: Duration::from_secs(30),
            end: Duration::from_secs(2),
            http: kit::http::Limits::default(),
        }
    }
}

/// Serves until `stop` resolves, lets running calls end, then ends every child.
///
/// # Errors
/// When the listener is not on a loopback address or cannot be used. A failing child ends its own session alone.
pub async fn serve(
    listener: std::net::TcpListener,
    secret: Secret,
    program: Program,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let table = Arc::new(table::Table::new(program, limits.clone()));
    let front = front::Front::new(Arc::clone(&table), secret, &limits);
    let answer = move |request| {
        let front = front.clone();
        async move { front.answer(request).await }
    };
    let stopped = async {
        tokio::select! {
            () = stop => {}
            () = table.expire() => {}
        }
        // A stream that waits for news would hold the drain up to its end.
        table.close_streams();
    };
    let served = kit::http::serve_answers(listener, &limits.http, answer, stopped).await;
    table.end().await;
    served
}
