//! The one door through which tasks are started.
//!
//! A [`Tasks`] owns what it starts: it can wait for all of them, and dropping it aborts what is left. Nothing is
//! detached.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// A group of tasks with one owner; clones start tasks in the same group.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task in this group.
    ///
    /// Finished tasks are collected here, so a group that lives as long as the process does not grow.
    pub fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = set.try_join_next() {
            report(ended);
        }
        set.spawn(task);
    }

    /// How many tasks of the group have not been collected yet.
    #[must_use]
    pub fn running(&self) -> usize {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = set.try_join_next() {
            report(ended);
        }
        set.len()
    }

    /// Waits until every task that was started has ended, also those started meanwhile.
    ///
    /// Dropping the returned future aborts the tasks it was waiting for.
    pub async fn drained(&self) {
        loop {
            let mut set = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            if set.is_empty() {
                return;
            }
            while let Some(ended) = set.join_next().await {
                report(ended);
            }
        }
    }

    /// Aborts every task that is still running.
    pub fn abort(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(fault) = ended
        && fault.is_panic()
    {
        tracing::error!(%fault, "a task panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::Tasks;

    #[tokio::test]
    async fn draining_waits_for_tasks_that_tasks_start() {
        let tasks = Tasks::new();
        let (done, ended) = tokio::sync::oneshot::channel();
        let inner = tasks.clone();
        tasks.start(async move {
            inner.start(async move {
                tokio::task::yield_now().await;
                let _ = done.send(());
            });
        });
        tasks.drained().await;
        assert!(ended.await.is_ok());
        assert_eq!(tasks.running(), 0);
    }
}
