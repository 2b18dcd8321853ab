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
use crate::session::Session;

#[derive(Debug)]
pub(crate) struct Table {
    program: Program,
    limits: Limits,
    slots: Arc<Semaphore>,
    open: Mutex<HashMap<String, Arc<Session>>>,
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
    pub(crate) session: Arc<Session>,
    is_kept: bool,
}

impl Table {
    pub(crate) fn new(program: Program, limits: Limits) -> Self {
        Self {
            program,
            slots: Arc::new(Semaphore::new(limits.sessions)),
            limits,
            open: Mutex::default(),
            patience: Mutex::default(),
            tasks: Tasks::new(),
        }
    }

    /// Starts a child for a new session.
    pub(crate) fn start(&self) -> Result<Opening, Unopened> {
        let now = clock::now();
        if let Some(left) = self.patience().left(now) {
            return Err(Unopened::Waiting(left));
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_none| Unopened::Full)?;
        let id = unguessable().map_err(Unopened::NotStarted)?;
        let name = id.get(..SHORT).unwrap_or_default().to_owned();
        let session = Session::start(&self.program, name, &self.limits, slot, &self.tasks).map_err(|fault| {
            // A system that is out of processes is no fault of the command, but is not asked again at once either.
            self.patience().failed(now);
            Unopened::NotStarted(fault)
        })?;
        Ok(Opening { id, session, is_kept: false })
    }

    /// The child has answered: from here its session can be found.
    pub(crate) fn keep(&self, mut opening: Opening) {
        opening.is_kept = true;
        self.patience().succeeded();
        self.open().insert(opening.id.clone(), Arc::clone(&opening.session));
    }

    /// The child died before it answered; how long nobody may start another.
    pub(crate) fn failed(&self) -> Duration {
        self.patience().failed(clock::now())
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
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

    /// Ends what is unused, for as long as it is polled.
    pub(crate) async fn expire(&self) {
        loop {
            tokio::time::sleep((self.limits.idle / 4).min(LONGEST_PAUSE)).await;
            let now = clock::now();
            self.open().retain(|_, session| {
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
    }

    pub(crate) fn close_streams(&self) {
        for session in self.open().values() {
            session.router().close_stream();
        }
    }

    /// Ends every child and waits until they are gone.
    pub(crate) async fn end(&self) {
        for (_, session) in self.open().drain() {
            session.stop();
        }
        // Three times: input closed, SIGTERM, SIGKILL.
        let longest = self.limits.end.saturating_mul(3) + LONGEST_PAUSE / 10;
        if tokio::time::timeout(longest, self.tasks.drained()).await.is_err() {
            tracing::warn!("stdio servers were still running at the end");
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_kept {
            self.session.stop();
        }
    }
}

/// How long to leave a command alone that has failed: longer with every failure in a row.
#[derive(Debug, Default)]
struct Patience {
    failures: u32,
    until: Option<Instant>,
}

impl Patience {
    fn left(&self, now: Instant) -> Option<Duration> {
        self.until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn failed(&mut self, now: Instant) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.until = now.checked_add(pause);
        pause
    }

    fn succeeded(&mut self) {
        *self = Self::default();
    }
}

fn unguessable() -> io::Result<String> {
    let mut bytes = [0_u8; 24];
    aws_lc_rs::rand::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Characters of an id that a log may show.
const SHORT: usize = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LONGEST_PAUSE, Patience};

    #[test]
    fn a_command_that_fails_is_left_alone_longer_each_time() {
        let now = kit::clock::now();
        let mut patience = Patience::default();
        assert_eq!(patience.left(now), None);
        assert_eq!(patience.failed(now), Duration::from_millis(500));
        assert_eq!(patience.failed(now), Duration::from_secs(1));
        assert_eq!(patience.left(now), Some(Duration::from_secs(1)));
        assert_eq!(patience.left(now + Duration::from_secs(1)), None);
        for _ in 0..40 {
            patience.failed(now);
        }
        assert_eq!(patience.failed(now), LONGEST_PAUSE);
        patience.succeeded();
        assert_eq!(patience.left(now), None);
    }
}
