//! The sessions that are open, and when another may be opened.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::clock;
use kit::tasks::Tasks;
use tokio::sync::Semaphore;

use crate::Limits;
use crate::child::Program;
use crate::patience::Patience;
use crate::router::Kin;
use crate::server::Server;

#[derive(Debug)]
pub(crate) struct Table {
    program: Program,
    limits: Limits,
    slots: Arc<Semaphore>,
    open: Mutex<HashMap<String, Arc<Server>>>,
    patience: Mutex<Patience>,
    tasks: Tasks,
}

/// Why no session is opened now.
#[derive(Debug)]
pub(crate) enum Unopened {
    Full,
    /// The command failed lately; how long to wait before the next start.
    Waiting(Duration),
    NotStarted(io::Error),
}

/// A session that has not answered yet. Dropping it ends the child.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: String,
    pub(crate) server: Arc<Server>,
    is_kept: bool,
}

impl Table {
    pub(crate) fn new(program: Program, limits: Limits, tasks: Tasks) -> Self {
        Self {
            program,
            slots: Arc::new(Semaphore::new(limits.sessions)),
            limits,
            open: Mutex::default(),
            patience: Mutex::default(),
            tasks,
        }
    }

    /// Starts a child for a new session.
    pub(crate) async fn start(&self) -> Result<Opening, Unopened> {
        let now = clock::now();
        if let Some(left) = self.patience().left(now) {
            return Err(Unopened::Waiting(left));
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_none| Unopened::Full)?;
        let id = unguessable().map_err(Unopened::NotStarted)?;
        let name = id.get(..SHORT).unwrap_or_default().to_owned();
        let started = Server::start(&self.program, Kin::Session, name, &self.limits, slot, &self.tasks).await;
        let server = started.map_err(|fault| {
            // A system that is out of processes is no fault of the command, but is not asked again at once either.
            self.patience().failed(now);
            Unopened::NotStarted(fault)
        })?;
        Ok(Opening { id, server, is_kept: false })
    }

    /// The child has answered: from here its session can be found.
    pub(crate) fn keep(&self, mut opening: Opening) {
        opening.is_kept = true;
        self.patience().succeeded();
        self.open().insert(opening.id.clone(), Arc::clone(&opening.server));
    }

    /// The child died before it answered; how long nobody may start another.
    pub(crate) fn failed(&self) -> Duration {
        self.patience().failed(clock::now())
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Server>> {
        let mut open = self.open();
        let session = open.get(id)?;
        if session.router().is_ended() {
            open.remove(id);
            return None;
        }
        Some(Arc::clone(session))
    }

    pub(crate) fn remove(&self, id: &str) -> bool {
        let removed = self.open().remove(id);
        if let Some(session) = &removed {
            session.stop();
        }
        removed.is_some()
    }

    /// Ends what has been unused for long enough.
    pub(crate) fn expire(&self, now: Instant) {
        self.open().retain(|_, session| {
            session.leave_late(now);
            if session.router().is_in_use() {
                session.touch();
            }
            let is_kept = !session.router().is_ended()
                && now.saturating_duration_since(session.unused_since()) < self.limits.idle;
            if !is_kept {
                session.stop();
            }
            is_kept
        });
    }

    pub(crate) fn close_streams(&self) {
        for session in self.open().values() {
            session.close_streams();
        }
    }

    /// Ends every session's child; they are gone when their tasks have ended.
    pub(crate) fn stop(&self) {
        for (_, session) in self.open().drain() {
            session.stop();
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Server>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_kept {
            self.server.stop();
        }
    }
}

fn unguessable() -> io::Result<String> {
    let mut bytes = [0_u8; 24];
    aws_lc_rs::rand::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Characters of an id that a log may show.
const SHORT: usize = 6;
