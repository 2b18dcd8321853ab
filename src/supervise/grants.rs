//! The changes of the OAuth state that the edge asks for, one after the other.
//!
//! They are made off-thread and under the file's lock, so that neither a slow disk nor a command that holds the lock holds
//! up the supervisor.

use kit::tasks::Tasks;
use tokio::sync::mpsc;

use super::kept::Line;
use crate::app::words::{Down, ToEdge};
use crate::oauth::keeper::{File, Unkept};
use crate::oauth::state::{Change, Outcome};

/// A queue of them.
#[derive(Clone, Debug)]
pub(super) struct Grants(mpsc::Sender<Asked>);

#[derive(Debug)]
struct Asked {
    id: u64,
    change: Change,
    down: mpsc::Sender<Line>,
}

impl Grants {
    pub(super) fn start(file: File, tasks: &Tasks) -> Self {
        let (ask, asked) = mpsc::channel(MOST_WAITING);
        tasks.start(serve(file, asked));
        Self(ask)
    }

    /// Says why it is not even begun.
    pub(super) fn ask(&self, id: u64, change: Change, down: mpsc::Sender<Line>) -> Result<(), Unkept> {
        self.0.try_send(Asked { id, change, down }).map_err(|_full| Unkept::Busy { most: MOST_WAITING })
    }
}

async fn serve(file: File, mut asked: mpsc::Receiver<Asked>) {
    while let Some(Asked { id, change, down }) = asked.recv().await {
        let done = one(file.clone(), change).await;
        // An edge that has ended has nobody left who waits for it.
        let _ = down.send((Down::Edge(ToEdge::Granted { id, done }), Vec::new())).await;
    }
}

async fn one(file: File, change: Change) -> Result<Outcome, Unkept> {
    let path = file.path().to_owned();
    let fault = match tokio::task::spawn_blocking(move || file.apply(change)).await {
        Ok(Ok(done)) => return Ok(done?),
        Ok(Err(fault)) => kit::chain(&fault),
        Err(fault) => fault.to_string(),
    };
    tracing::error!(store = %path.display(), fault, "a change of the OAuth state was not made");
    Err(Unkept::Fault)
}

/// As many as an edge asks for at once, and no more.
const MOST_WAITING: usize = 64;
