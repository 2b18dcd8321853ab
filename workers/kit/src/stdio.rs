//! A worker at the end of a pipe: one JSON-RPC message a line, both eras on one process.
//!
//! Calls are served concurrently. A line that is no message gets an error, and the next line is read. Nothing but MCP is
//! ever written. The server ends at the end of its input, after giving running calls a moment to answer, or at once when
//! it is told to stop.

mod lines;

use std::future::Future;
use std::sync::Arc;

use rmcp::service::serve_directly_with_ct;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::handler::{Handler, PIPED};
use crate::tasks::Tasks;
use crate::worker::{Caller, Worker};

/// Serves `worker` on this process's standard input and output until the input ends or `stop` resolves.
///
/// Where standard input is not a pipe, a read of it cannot be interrupted: a caller that ends early must not wait for the
/// runtime's blocking threads.
pub async fn serve(worker: Arc<dyn Worker>, stop: impl Future<Output = ()>) {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_on(worker, input, output, stop).await;
}

/// Serves `worker` on any pair of streams.
pub async fn serve_on<R, W>(worker: Arc<dyn Worker>, input: R, output: W, stop: impl Future<Output = ()>)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let tasks = Tasks::new();
    let transport = lines::Lines::new(input, output, &tasks);
    let handler = Handler::new(worker, MOST_CALLS, PIPED, |_| Caller::Local);
    let cancel = CancellationToken::new();
    // Served without the library's handshake: the original never asked whether `initialize` came first, a modern client
    // sends none, and a stray notification before it must not end the server.
    let running = serve_directly_with_ct(handler, transport, None, cancel.clone());
    let ended = running.waiting();
    tokio::pin!(ended);
    tokio::select! {
        _ = &mut ended => {}
        () = stop => {
            cancel.cancel();
            let _ = ended.await;
        }
    }
    tasks.drained().await;
}

/// One client with more calls than this in flight has lost count.
const MOST_CALLS: usize = 256;
