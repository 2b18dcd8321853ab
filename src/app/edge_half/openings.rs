//! Files that the supervisor opens for an edge that opens no path.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::app::words::{FromEdge, Stored};
use crate::store::Opener;

/// The questions for a file that wait for an answer.
#[derive(Clone)]
pub(super) struct Openings {
    waiting: Arc<Mutex<Waiting>>,
    say: mpsc::Sender<FromEdge>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, oneshot::Sender<io::Result<Option<OwnedFd>>>>,
}

impl Openings {
    pub(super) fn new(say: mpsc::Sender<FromEdge>) -> Self {
        Self { waiting: Arc::default(), say }
    }

    pub(super) fn opener(&self, file: Stored, name: std::path::PathBuf) -> Opener {
        let openings = self.clone();
        Opener::Asked {
            name,
            ask: Box::new(move || {
                let openings = openings.clone();
                Box::pin(async move { openings.ask(file).await })
            }),
        }
    }

    async fn ask(&self, file: Stored) -> io::Result<Option<OwnedFd>> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // A reading that gave up waiting has closed its end.
            waiting.answers.retain(|_, answer| !answer.is_closed());
            waiting.next = waiting.next.wrapping_add(1);
            let id = waiting.next;
            waiting.answers.insert(id, answer);
            id
        };
        self.say.send(FromEdge::Open { id, file }).await.map_err(io::Error::other)?;
        answered.await.map_err(io::Error::other)?
    }

    pub(super) fn answer(&self, id: u64, opened: io::Result<Option<OwnedFd>>) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(opened);
        }
    }
}
