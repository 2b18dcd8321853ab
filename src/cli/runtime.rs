//! The runtime that a verb runs on.

use super::failure::Failure;

/// Starts the runtime a verb runs on.
pub(super) fn on_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime()?.block_on(work)
}

/// The same for a verb whose reads, of standard input or of a file that hangs, nobody waits for when its work is done.
pub(super) fn on_runtime_at_once<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|fault| Failure::new(anyhow::Error::new(fault).context("start the runtime")))
}
