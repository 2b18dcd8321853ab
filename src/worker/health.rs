//! When a worker was seen to be there, and when to be away.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// What real exchanges have met; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    refusals: watch::Sender<u64>,
    /// Milliseconds since the epoch; none before the first.
    answered: Arc<AtomicU64>,
}

impl Health {
    /// A connection to the worker was refused.
    pub fn refuse(&self) {
        self.refusals.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// The worker has answered just now.
    pub fn answer(&self) {
        let now = u64::try_from(kit::clock::since_epoch().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(now, Ordering::Relaxed);
    }

    /// When it did last, since the epoch.
    #[must_use]
    pub fn last_answer(&self) -> Option<Duration> {
        let at = self.answered.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(at))
    }

    /// Resolves when a connection is refused after this call.
    pub fn refused(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut times = self.refusals.subscribe();
        async move {
            // Whoever could refuse is gone with the worker.
            if times.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }
}
