//! A job and the call that waits for it.

use std::sync::Arc;
use std::time::Duration;

use kit::clock;

use super::super::output::{Extract, Output, Stream};
use super::super::table::{Aftermath, JobId, Outcome, State};
use super::Jobs;
use crate::backend::BackendError;

/// A job and the call that waits for it. Dropping it ends the job and forgets it.
pub(crate) struct Attached {
    pub(super) jobs: Jobs,
    pub(super) id: JobId,
    pub(super) held: bool,
}

/// What a call that waited for the end gets.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) stdout: Extract,
    pub(crate) stderr: Extract,
    pub(crate) took: Duration,
    pub(crate) aftermath: Aftermath,
}

impl Attached {
    /// Waits until the command runs.
    pub(crate) async fn started(&self) -> Result<(), Arc<BackendError>> {
        if let Some(mut news) = self.jobs.news(self.id) {
            let _ = news.wait_for(|news| news.started || news.ended).await;
        }
        match self.jobs.table().state(self.id) {
            Some(State::Ended(Outcome::NotStarted(fault))) => Err(Arc::clone(fault)),
            _ => Ok(()),
        }
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        if let Some(mut news) = self.jobs.news(self.id) {
            let _ = news.wait_for(|news| news.ended).await;
        }
    }

    /// The last line that was written, for a progress report.
    pub(crate) fn last_line(&self) -> Option<String> {
        self.jobs.table().written(self.id).and_then(Output::last_line)
    }

    /// What was written, in about `most` bytes, and how it ended; `None` while it runs.
    pub(crate) fn finished(&self, most: usize) -> Option<Finished> {
        let now = clock::now();
        let mut table = self.jobs.table();
        // An empty page is looked at for the state and the times alone.
        let look = table.look(now, self.id, u64::MAX, 0)?;
        let State::Ended(outcome) = look.state else { return None };
        let aftermath = look.aftermath;
        let took = look.ended.unwrap_or(now).saturating_duration_since(look.begun);
        let output = table.written(self.id)?;
        let (out, err) = (output.total(Stream::Stdout), output.total(Stream::Stderr));
        // Each stream may use what the other leaves, and half in any case.
        let spare = |other: u64| most.saturating_sub(usize::try_from(other).unwrap_or(usize::MAX)).max(most / 2);
        let stdout = output.extract(Stream::Stdout, spare(err));
        let stderr = output.extract(Stream::Stderr, spare(out));
        Some(Finished { outcome, stdout, stderr, took, aftermath })
    }

    /// Lets the job go on by itself; its id is what is left.
    pub(crate) fn release(mut self) -> JobId {
        self.held = false;
        self.id
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.held {
            self.jobs.cancel(self.id);
            self.jobs.table().abandon(self.id);
        }
    }
}

/// A call's place among the tenant's jobs.
pub(crate) struct Occupied(pub(super) Attached);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.jobs.end(self.0.id, Outcome::Exited(0));
    }
}
