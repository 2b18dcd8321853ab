//! A worker that puts any stdio MCP server on loopback HTTP, for an edge in front of it.
//!
//! `front` reads a request and `call` follows it. In the era of sessions, `table` finds or opens the session that it
//! belongs to, which is one child process; without sessions, one process is `shared` by all once `era` has found out that
//! it serves that era. A `server` is such a process, with its `router`, which says whom each line of the child is for;
//! `child` starts and ends processes, and a `keeper` beside each
//! sees to what they start in turn, and `orphans` to what a killed keeper leaves; `frame` and `lines` read what passes through. Ids and progress tokens are ours on
//! the child's side and the client's own bytes on the other; everything else passes as it was written.
//!
//! The bridge never repeats a call: when a child dies, whoever waits is told at once that the outcome is unknown. In a
//! session a client that leaves cancels nothing; without one, leaving cancels. A child of sessions alone refuses requests
//! of the other era in words by which their clients fall back to a session.

mod call;
mod child;
mod era;
mod frame;
mod front;
#[cfg(target_os = "linux")]
mod keeper;
mod lines;
mod orphans;
mod outlet;
mod patience;
mod reply;
mod router;
mod server;
mod shared;
mod skim;
mod splice;
mod stderr;
mod table;
mod words;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, clock};

pub use child::Program;
#[cfg(target_os = "linux")]
pub use keeper::keeper_main;
#[cfg(target_os = "linux")]
pub use orphans::adopt_orphans;

use front::Front;
use shared::Shared;
use table::Table;

/// How much one bridge takes on, and how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sessions, each with a child.
    pub sessions: usize,
    /// How long a session may stay unused.
    pub idle: Duration,
    /// Calls in flight in one process.
    pub calls: usize,
    /// Subscriptions in one process, beside those.
    pub subscriptions: usize,
    /// How long a process may take to answer the first time.
    pub open: Duration,
    /// How long a call may take, its answer included.
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
            subscriptions: 16,
            // What is fetched from a registry first takes its time.
            open: Duration::from_secs(60),
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
    let tasks = Tasks::new();
    let table = Arc::new(Table::new(program.clone(), limits.clone(), tasks.clone()));
    let shared = Shared::new(program, limits.clone(), tasks.clone());
    let front = Front::new(Arc::clone(&table), Arc::clone(&shared), secret, limits.clone());
    let answer = move |request| {
        let front = front.clone();
        async move { front.answer(request).await }
    };
    let stopped = async {
        tokio::select! {
            () = stop => {}
            () = sweep(&table, &shared, &limits) => {}
        }
        // A stream that waits for news would hold the drain up to its end.
        table.close_streams();
        shared.close_streams();
    };
    let served = kit::http::serve_answers(listener, &limits.http, answer, stopped).await;
    table.stop();
    shared.stop();
    // Input closed, then SIGTERM, then SIGKILL.
    if tokio::time::timeout(limits.end.saturating_mul(2) + child::KEEPERS + SLACK, tasks.drained()).await.is_err() {
        tracing::warn!("stdio servers were still running at the end");
    }
    served
}

/// Ends what is unused or late, for as long as it is polled.
async fn sweep(table: &Table, shared: &Shared, limits: &Limits) {
    loop {
        tokio::time::sleep((limits.idle.min(limits.call) / 4).clamp(LEAST_SWEEP, MOST_SWEEP)).await;
        let now = clock::now();
        table.expire(now);
        shared.leave_late(now);
    }
}

const LEAST_SWEEP: Duration = Duration::from_millis(10);
const MOST_SWEEP: Duration = Duration::from_secs(30);
const SLACK: Duration = Duration::from_secs(1);
