//! The end of a service, in order or at once.

use std::time::Duration;

use super::{Outcome, Phase, Supervisor};
use crate::app::words::{Down, ToEdge, ToWorker};
use crate::signal::StopSignals;

impl Supervisor {
    /// Drains the edge, then ends the worker. Another signal ends both at once.
    pub(super) async fn stop(mut self, outcome: Outcome, signals: &mut StopSignals) -> Outcome {
        self.phase = Phase::Stopping;
        self.reload_no_more();
        let most = self.plan.drain.as_secs();
        let longest = self.plan.drain + GRACE + WORKER_WAIT + 2 * CUT_WAIT;
        self.plan.manager.stopping(&format!("stopping: calls under way may take up to {most} s"), longest);
        tracing::info!("stopping: calls under way may take up to {most} s; a second signal ends them at once");
        self.edge.say(Down::Edge(ToEdge::Stop), Vec::new());
        // The edge keeps the drain's deadline itself; what it needs beyond is for ending, not for calls.
        if !self.until_gone(self.plan.drain + GRACE, signals, |these| these.edge.is_gone()).await {
            return self.cut().await;
        }
        self.worker.say(Down::Worker(ToWorker::Stop), Vec::new());
        if !self.until_gone(WORKER_WAIT, signals, |these| these.worker.is_gone()).await {
            return self.cut().await;
        }
        if self.control_lost { Outcome::ControlLost } else { outcome }
    }

    /// Whether it came about; false when a signal came first. Past the deadline, what is left is killed.
    async fn until_gone(&mut self, within: Duration, signals: &mut StopSignals, gone: impl Fn(&Self) -> bool) -> bool {
        let deadline = tokio::time::sleep(within);
        tokio::pin!(deadline);
        let mut late = false;
        while !gone(self) {
            tokio::select! {
                happening = self.next() => self.handle(happening),
                () = signals.next() => return false,
                () = &mut deadline, if !late => {
                    late = true;
                    tracing::warn!("a child did not end in time and is killed");
                    if self.edge.is_gone() { self.worker.kill() } else { self.edge.kill() }
                }
            }
        }
        true
    }

    async fn cut(mut self) -> Outcome {
        self.edge.kill();
        self.worker.kill();
        let both = async {
            while !(self.edge.is_gone() && self.worker.is_gone()) {
                let happening = self.next().await;
                self.handle(happening);
            }
        };
        // Only a process that the kernel itself holds fast takes longer, and waiting would not help it.
        if tokio::time::timeout(CUT_WAIT, both).await.is_err() {
            tracing::error!("a child could not be ended");
        }
        Outcome::Cut
    }
}

/// What an edge needs after its drain's deadline to close and end.
const GRACE: Duration = Duration::from_secs(5);

/// A worker proves the death of every tenant's processes before it ends.
const WORKER_WAIT: Duration = Duration::from_secs(20);

/// A killed process is gone at once, unless the kernel holds it.
const CUT_WAIT: Duration = Duration::from_secs(2);
