//! Whether a worker was seen to be away.

use std::future::Future;

use tokio::sync::watch;

/// What real exchanges have met; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health(watch::Sender<u64>);

impl Health {
    /// A connection to the worker was refused.
    pub fn refuse(&self) {
        self.0.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Resolves when a connection is refused after this call.
    pub fn refused(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut times = self.0.subscribe();
        async move {
            // Whoever could refuse is gone with the worker.
            if times.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }
}
