//! The record of calls, in files that the supervisor opens for an edge that opens no path.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

use crate::app::words::FromEdge;
use crate::audit::{Log, Terms};

/// The one question for the next file that may wait for an answer.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Option<oneshot::Sender<io::Result<OwnedFd>>>>>);

impl Turns {
    pub(super) fn answer(&self, turned: io::Result<OwnedFd>) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            let _ = waiting.send(turned);
        }
    }

    async fn next(&self, say: &mpsc::Sender<FromEdge>) -> io::Result<File> {
        let (answer, answered) = oneshot::channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        say.send(FromEdge::TurnAudit).await.map_err(io::Error::other)?;
        Ok(answered.await.map_err(io::Error::other)??.into())
    }
}

/// Files in the place of one that was moved or deleted.
pub(super) struct Places(mpsc::Receiver<io::Result<File>>);

impl Places {
    pub(super) fn new() -> (mpsc::Sender<io::Result<File>>, Self) {
        let (placed, places) = mpsc::channel(MOST_PLACES);
        (placed, Self(places))
    }

    /// Brings each to the record, until the supervisor is gone.
    pub(super) async fn follow(mut self, log: Log) {
        while let Some(placed) = self.0.recv().await {
            log.displaced(placed).await;
        }
    }
}

/// Begins to record in this file, which may follow another.
pub(super) fn start(
    terms: Terms,
    (file, before): (File, Option<File>),
    turns: Turns,
    say: mpsc::Sender<FromEdge>,
    tasks: &Tasks,
) -> io::Result<Log> {
    let next = Box::new(move || {
        let (turns, say) = (turns.clone(), say.clone());
        Box::pin(async move { turns.next(&say).await }) as _
    });
    Log::start(file, before.as_ref(), terms, next, tasks)
}

/// There is one a second at most.
const MOST_PLACES: usize = 8;
