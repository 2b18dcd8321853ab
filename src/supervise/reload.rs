//! What a service was started with, read again while it runs.
//!
//! One reading at a time: what is asked for during one begins another behind it, since the first may have missed the
//! change. One that hangs is given up and told as a fault. A fault changes nothing, is logged and told to whoever asked. What an edge took up is what the next edge is
//! started with.
//!
//! ```text
//!   Idle ── asked, SIGHUP, a file changed ──> Reading ── nothing new, or a fault ──> Idle
//!                                                └── sent to the edge ──> Telling ── its answer, or its end ──> Idle
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::kept::Event;
use super::stamps::Stamps;
use super::{Phase, Supervisor};
use crate::admin::operator::Asker;
use crate::admin::talk::Answering;
use crate::admin::words::{Answer, Refusal};
use crate::app::words::{BeginEdge, Down, ToEdge};
use crate::audit::acts::{Act, Acts};

/// Reads again; blocking. It is given what the edge has now.
#[derive(Clone)]
pub struct Reread(Arc<Read>);

type Read = dyn Fn(&BeginEdge) -> Reading + Send + Sync;

/// What came of a reading.
#[derive(Debug)]
pub struct Reading {
    /// The files that it looked into, as they were before.
    pub stamps: Stamps,
    /// Or why it cannot be taken up, with the file.
    pub fresh: Result<Fresh, String>,
}

/// What can be taken up.
#[derive(Debug)]
pub struct Fresh {
    pub begin: BeginEdge,
    pub drain: Duration,
    pub serves_without_sandbox: bool,
    /// What stands otherwise in the files and only a restart takes up.
    pub needs_restart: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Reloads {
    stage: Stage,
    /// Those who asked while one was under way.
    next: Option<Vec<Asker>>,
    stamps: Stamps,
    /// For each reading, also for one that hangs and was given up.
    readers: Arc<Semaphore>,
    pub(super) most_reading: Duration,
    /// When to look at the files.
    look: Option<Instant>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    Reading(Vec<Asker>),
    Telling {
        fresh: Box<Fresh>,
        changed: Vec<String>,
        askers: Vec<Asker>,
    },
}

/// What a reload came to.
struct Done {
    changed: Vec<String>,
    needs_restart: Vec<String>,
}

impl Reread {
    pub fn new(read: impl Fn(&BeginEdge) -> Reading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl std::fmt::Debug for Reread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reread(..)")
    }
}

impl Reloads {
    pub(super) fn new(stamps: Stamps) -> Self {
        let look = (!stamps.is_empty()).then(|| kit::clock::now() + LOOK_PAUSE);
        Self {
            stage: Stage::Idle,
            next: None,
            stamps,
            readers: Arc::new(Semaphore::new(MOST_READERS)),
            most_reading: MOST_READING,
            look,
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.look
    }
}

impl Supervisor {
    /// Begins a reload, or another behind the one under way.
    pub(super) fn reload(&mut self, asker: Option<Asker>) {
        let askers: Vec<_> = asker.into_iter().collect();
        match (&self.reloads.stage, self.phase) {
            (_, Phase::Stopping) => self.refuse_reload(askers, Refusal::Failed, STOPPING),
            (Stage::Idle, _) => self.read_again(askers),
            (Stage::Reading(_) | Stage::Telling { .. }, _) => self.reloads.next.get_or_insert_default().extend(askers),
        }
    }

    fn read_again(&mut self, askers: Vec<Asker>) {
        self.reloads.stage = Stage::Reading(askers);
        if self.phase == Phase::Running {
            self.plan.manager.reloading();
        }
        let (reread, begin, tell) = (self.plan.reread.clone(), self.plan.edge.begin.clone(), self.tell.clone());
        let (stamps, readers, most) =
            (self.reloads.stamps.clone(), Arc::clone(&self.reloads.readers), self.reloads.most_reading);
        self.tasks.start(async move {
            let read = match readers.try_acquire_owned() {
                Ok(reader) => {
                    let read = tokio::task::spawn_blocking(move || {
                        let _reader = reader;
                        (reread.0)(&begin)
                    });
                    let late = || format!("{HANGS} for {} s", most.as_secs());
                    let read = timeout(most, read).await.map_err(|_late| late());
                    read.and_then(|read| read.map_err(|fault| fault.to_string()))
                }
                Err(_none) => Err(format!("{HANGS}, as the {MOST_READERS} readings before do still")),
            };
            let read = read.unwrap_or_else(|fault| Reading { stamps, fresh: Err(fault) });
            // Nobody listens once the supervisor has ended.
            let _ = tell.send(Event::Reread(Box::new(read))).await;
        });
    }

    pub(super) fn reread(&mut self, reading: Reading) {
        self.reloads.stamps = reading.stamps;
        let Stage::Reading(askers) = std::mem::take(&mut self.reloads.stage) else { return };
        let fresh = match reading.fresh {
            Ok(fresh) => fresh,
            Err(fault) => return self.reloaded(askers, Err(fault)),
        };
        let changed = self.plan.edge.begin.changes(&fresh.begin);
        if changed.is_empty() || self.edge.is_gone() {
            // An edge that is being started again begins with it.
            let needs_restart = self.adopt(fresh);
            return self.reloaded(askers, Ok(Done { changed, needs_restart }));
        }
        self.edge.say(Down::Edge(ToEdge::Reload(Box::new(fresh.begin.clone()))), Vec::new());
        self.reloads.stage = Stage::Telling { fresh: Box::new(fresh), changed, askers };
    }

    /// The edge has answered.
    pub(super) fn taken_up(&mut self, fault: Option<String>) {
        match std::mem::take(&mut self.reloads.stage) {
            Stage::Telling { fresh, changed, askers } => {
                let done = match fault {
                    Some(fault) => Err(fault),
                    None => Ok(Done { changed, needs_restart: self.adopt(*fresh) }),
                };
                self.reloaded(askers, done);
            }
            other @ (Stage::Idle | Stage::Reading(_)) => self.reloads.stage = other,
        }
    }

    /// The edge has ended. One that fell over a configuration is not started with it again.
    pub(super) fn reload_broke_off(&mut self) {
        if matches!(self.reloads.stage, Stage::Telling { .. }) {
            self.taken_up(Some("the edge ended while it took it up".to_owned()));
        }
    }

    /// The service is stopping.
    pub(super) fn reload_no_more(&mut self) {
        self.reloads.look = None;
        let mut askers = self.reloads.next.take().unwrap_or_default();
        match std::mem::take(&mut self.reloads.stage) {
            Stage::Idle => {}
            Stage::Reading(more) | Stage::Telling { askers: more, .. } => askers.extend(more),
        }
        self.refuse_reload(askers, Refusal::Failed, STOPPING);
    }

    /// From now on an edge is started with it; yields what it could not take up.
    fn adopt(&mut self, fresh: Fresh) -> Vec<String> {
        let Fresh { mut begin, drain, serves_without_sandbox, needs_restart } = fresh;
        // It goes on, and what is kept of it may be newer than what was read again.
        begin.acme = self.plan.edge.begin.acme.take();
        self.plan.edge.begin = begin;
        self.plan.drain = drain;
        self.plan.serves_without_sandbox = serves_without_sandbox;
        needs_restart
    }

    fn reloaded(&mut self, askers: Vec<Asker>, done: Result<Done, String>) {
        self.reload_told(done.as_ref().err().cloned());
        match done {
            Ok(Done { changed, needs_restart }) => {
                for what in &needs_restart {
                    tracing::warn!("{what}: a changed value needs a restart");
                }
                let what = changed.join(", ");
                tracing::info!(changed = what, "the configuration was read again");
                if askers.is_empty() && !changed.is_empty() {
                    self.record_reload(&changed);
                }
                let answer = Answer::Reloaded { changed, needs_restart };
                self.answer_reload(askers, &answer);
            }
            Err(fault) => {
                tracing::error!(fault, "the configuration cannot be taken up; nothing was changed");
                self.refuse_reload(askers, Refusal::Configuration, &fault);
            }
        }
        if let Some(next) = self.reloads.next.take() {
            self.read_again(next);
        }
    }

    /// Whoever asked by a command has it on record already; a signal, or a file that has changed, has nobody else.
    fn record_reload(&self, changed: &[String]) {
        let Some(state) = self.plan.last_used.clone() else { return };
        let act = Act::new("reload (by a signal or a file)").with(changed.to_vec());
        self.tasks.start(async move {
            let acts = Acts::of(&state);
            if let Ok(Err(fault)) = tokio::task::spawn_blocking(move || acts.record(&act)).await {
                tracing::warn!(%fault, "a reload was done and is not on record");
            }
        });
    }

    fn refuse_reload(&self, askers: Vec<Asker>, why: Refusal, message: &str) {
        self.answer_reload(askers, &Answer::refused(why, message));
    }

    fn answer_reload(&self, askers: Vec<Asker>, answer: &Answer) {
        for asker in askers {
            let answer = answer.clone();
            self.tasks.start(async move {
                if let Ok((mut answering, _)) = Answering::begin(asker.connection).await {
                    // An asker that is gone has seen the log, or nothing.
                    let _ = answering.say(&answer, &[]).await;
                }
                drop(asker.place);
            });
        }
    }

    pub(super) fn look_if_due(&mut self, now: Instant) {
        if self.reloads.look.is_none_or(|look| now < look) {
            return;
        }
        // Until it is answered nothing is due.
        self.reloads.look = None;
        let (stamps, tell) = (self.reloads.stamps.clone(), self.tell.clone());
        self.tasks.start(async move {
            let changed = tokio::task::spawn_blocking(move || stamps.have_changed()).await.unwrap_or_default();
            let _ = tell.send(Event::Looked { changed }).await;
        });
    }

    pub(super) fn looked(&mut self, changed: bool) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.reloads.look = Some(kit::clock::now() + LOOK_PAUSE);
        // What a reading under way finds, it was told to look at itself.
        if changed && matches!(self.reloads.stage, Stage::Idle) {
            self.reload(None);
        }
    }
}

const HANGS: &str = "a file that the configuration names, or the system that it lies on, keeps its reader waiting";

/// Files on a disk take milliseconds.
const MOST_READING: Duration = Duration::from_secs(10);
/// The system takes none of them back.
const MOST_READERS: usize = 4;

const STOPPING: &str = "the service is stopping; nothing was changed";

/// Between two looks at the files. Each is a handful of `stat`s.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
