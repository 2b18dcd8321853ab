//! When a worker was seen to be there, and when to be away.
//!
//! What was seen last counts, in exchanges and in probes alike. A worker that nobody has reached yet is not there, and
//! neither is one that refused a connection, until it answers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::watch;

/// What has been met with one worker; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    seen: watch::Sender<Seen>,
    /// Milliseconds since the epoch; none before the first.
    answered: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    Answer,
    Refusal,
}

impl Health {
    /// A connection to the worker was refused.
    pub fn refuse(&self) {
        self.see(Seen::Refusal);
    }

    /// The worker has answered just now.
    pub fn answer(&self) {
        let now = u64::try_from(kit::clock::since_epoch().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(now, Ordering::Relaxed);
        self.see(Seen::Answer);
    }

    /// The worker has said this just now. Being unwell or not letting us in is no answer, as it is none to a probe.
    pub fn hear(&self, status: StatusCode) {
        if !(status.is_server_error() || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) {
            self.answer();
        }
    }

    /// When it did last, since the epoch.
    #[must_use]
    pub fn last_answer(&self) -> Option<Duration> {
        let at = self.answered.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(at))
    }

    /// Whether the last that was seen of it is an answer.
    #[must_use]
    pub fn is_well(&self) -> bool {
        *self.seen.borrow() == Seen::Answer
    }

    /// Resolves when the last that was seen of it is a refusal.
    pub fn refused(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut seen = self.seen.subscribe();
        async move {
            // Whoever could refuse is gone with the worker.
            if seen.wait_for(|seen| *seen == Seen::Refusal).await.is_err() {
                std::future::pending().await
            }
        }
    }

    fn see(&self, what: Seen) {
        // Nearly always it is what was seen before, and then nobody's lock is waited for.
        if *self.seen.borrow() != what {
            self.seen.send_replace(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::Health;

    #[test]
    fn what_was_seen_last_counts() {
        let health = Health::default();
        assert!(!health.is_well(), "nobody has reached it");
        health.answer();
        assert!(health.is_well());
        health.clone().refuse();
        assert!(!health.is_well());
        health.hear(StatusCode::NOT_FOUND);
        assert!(health.is_well());
    }

    #[test]
    fn a_worker_that_is_unwell_or_does_not_let_us_in_has_not_answered() {
        for status in [401, 403, 500, 503] {
            let health = Health::default();
            health.hear(StatusCode::from_u16(status).expect("a status"));
            assert!(!health.is_well() && health.last_answer().is_none(), "{status}");
        }
    }
}
