//! One child that is kept running: its current process, the line to it, and when it is started again.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use kit::tasks::Tasks;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::app::words::{Down, FromEdge, FromWorker};
use crate::worker::child::{Process, Started};
use crate::worker::handoff::{HandoffError, Receiver, Sender};
use crate::worker::restart::{Ending, Next, Policy, Restart};

use super::record::Found;
use super::reload::Reading;

/// A child's place; the child itself may be absent.
#[derive(Debug)]
pub(super) struct Kept {
    name: &'static str,
    restart: Restart,
    /// Tells the words of this child from those of its predecessor.
    generation: u64,
    live: Option<Live>,
    ready: bool,
    due: Option<Instant>,
    hopeless: bool,
}

#[derive(Debug)]
struct Live {
    since: Instant,
    line: mpsc::Sender<Line>,
    kill: mpsc::Sender<()>,
}

/// A message and the descriptors that go with it.
pub(super) type Line = (Down, Vec<OwnedFd>);

/// What a child did, or a task of the supervisor's own.
#[derive(Debug)]
pub(super) enum Event {
    Said {
        generation: u64,
        up: Up,
    },
    Ended {
        name: &'static str,
        generation: u64,
        status: io::Result<ExitStatus>,
    },
    Reread(Box<Reading>),
    /// Whether a file that was read is another now.
    Looked {
        changed: bool,
    },
    /// What is at the path of the record of calls.
    RecordLooked(Found),
}

#[derive(Debug)]
pub(super) enum Up {
    Edge(FromEdge),
    Worker(FromWorker),
}

impl Kept {
    pub(super) fn new(name: &'static str, policy: Policy) -> Self {
        let restart = Restart::new(policy);
        Self { name, restart, generation: 0, live: None, ready: false, due: None, hopeless: false }
    }

    /// Takes over a child that was just started.
    pub(super) fn started<T: DeserializeOwned + Send + 'static>(
        &mut self,
        started: Started,
        tasks: &Tasks,
        tell: mpsc::Sender<Event>,
        up: fn(T) -> Up,
    ) {
        self.generation += 1;
        self.due = None;
        self.ready = false;
        let since = kit::clock::now();
        self.restart.started(since);
        let (line, lines) = mpsc::channel(MOST_LINES);
        let (kill, killed) = mpsc::channel(1);
        let Started { process, sender, receiver } = started;
        tasks.start(speak(sender, lines));
        let attended = Attended { name: self.name, generation: self.generation, process, receiver, killed, tell };
        tasks.start(attended.attend(up));
        self.live = Some(Live { since, line, kill });
    }

    /// Sends a message down. A child that does not listen is killed, since it would never do what it is told.
    pub(super) fn say(&mut self, down: Down, descriptors: Vec<OwnedFd>) {
        let Some(live) = &self.live else { return };
        match live.line.try_send((down, descriptors)) {
            // Closed means that its socket broke, and then its end is about to be told.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                tracing::error!(child = self.name, "a child does not listen and is killed");
                self.kill();
            }
        }
    }

    pub(super) fn line(&self) -> Option<mpsc::Sender<Line>> {
        self.live.as_ref().map(|live| live.line.clone())
    }

    pub(super) fn kill(&mut self) {
        if let Some(live) = &self.live {
            // Full means that it is being killed already.
            let _ = live.kill.try_send(());
        }
    }

    /// It is starting still, and is given the whole time again.
    pub(super) fn goes_on(&mut self, now: Instant) {
        if let Some(live) = &mut self.live {
            live.since = now;
        }
    }

    pub(super) fn ready(&mut self) {
        self.ready = true;
    }

    pub(super) fn gone(&mut self) {
        self.live = None;
        self.ready = false;
    }

    /// It ended, or could not be started; when to start it again.
    pub(super) fn fell(&mut self, now: Instant) -> Next {
        let next = self.restart.ended(now, Ending::Fell);
        match next {
            Next::After(wait) => self.due = Some(now + wait),
            Next::Never => self.hopeless = true,
        }
        next
    }

    /// It is not started again.
    pub(super) fn give_up(&mut self) {
        self.hopeless = true;
        self.ready = false;
        self.due = None;
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn is_current(&self, generation: u64) -> bool {
        self.generation == generation
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// How long it has been starting, or has said nothing more of it, while it is not ready.
    pub(super) fn starts_since(&self, now: Instant) -> Option<Duration> {
        self.live.as_ref().filter(|_| !self.ready).map(|live| now.saturating_duration_since(live.since))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.live.is_none()
    }

    pub(super) fn is_hopeless(&self) -> bool {
        self.hopeless
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// A child's process and what comes from it, in the task that looks after both.
struct Attended {
    name: &'static str,
    generation: u64,
    process: Process,
    receiver: Receiver,
    killed: mpsc::Receiver<()>,
    tell: mpsc::Sender<Event>,
}

impl Attended {
    /// Passes on what the child says until it has ended, and then that it has.
    async fn attend<T: DeserializeOwned>(mut self, up: fn(T) -> Up) {
        let mut speaks = true;
        let status = loop {
            tokio::select! {
                status = self.process.ended() => break status,
                Some(()) = self.killed.recv() => self.process.kill(),
                said = self.receiver.receive::<T>(), if speaks => match said {
                    Ok(Some(said)) => self.tell(Event::Said { generation: self.generation, up: up(said.message) }).await,
                    // An end that leaves something unread breaks the socket instead of closing it.
                    Ok(None) | Err(HandoffError::Broken(_)) => speaks = false,
                    Err(
                        fault @ (HandoffError::TooLong | HandoffError::TooMany(_) | HandoffError::Malformed(_) | HandoffError::Bare),
                    ) => {
                        tracing::error!(child = self.name, %fault, "a child spoke nonsense and is killed");
                        speaks = false;
                        self.process.kill();
                    }
                },
            }
        };
        // What it said with its last breath explains its end.
        if speaks {
            let last_words = async {
                while let Ok(Some(said)) = self.receiver.receive::<T>().await {
                    self.tell(Event::Said { generation: self.generation, up: up(said.message) }).await;
                }
            };
            let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
        }
        self.tell(Event::Ended { name: self.name, generation: self.generation, status }).await;
    }

    async fn tell(&self, event: Event) {
        // Nobody listens once the supervisor has ended.
        let _ = self.tell.send(event).await;
    }
}

/// Writes messages to a child in their order until its socket breaks.
async fn speak(mut sender: Sender, mut lines: mpsc::Receiver<Line>) {
    while let Some((down, descriptors)) = lines.recv().await {
        let borrowed: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
        if let Err(fault) = sender.send(&down, &borrowed).await {
            tracing::debug!(%fault, "a child's control socket is closed");
            return;
        }
    }
}

/// What a child has not read yet; it reads at once or not at all.
const MOST_LINES: usize = 64;

/// The socket of an ended process has everything that will ever be in it.
const LAST_WORDS: Duration = Duration::from_millis(200);
