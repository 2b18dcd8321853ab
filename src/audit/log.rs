//! The one task that writes, off the path of a request.
//!
//! Lines wait for it in a queue with an end, those of a few milliseconds are written at a time, and are brought to the disk
//! once a second: a host that loses its power may lose the last second, a process that is killed loses what was in the queue.
//! A write that fails is tried again each second, and lines wait meanwhile; whether calls do too is the operator's choice. The
//! same holds while there is no file in the place of one that was moved or deleted.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kit::tasks::Tasks;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Terms;
use super::kept::Kept;
use super::line::Entry;

/// Where lines go; clones write to the same file.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

/// A line's place in the queue.
#[derive(Debug)]
pub struct Slot(OwnedPermit<Word>);

/// Yields the file that follows.
pub type Next = Box<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<File>> + Send>> + Send + Sync>;

struct Inner {
    queue: mpsc::Sender<Word>,
    terms: Terms,
    told: Arc<Told>,
    placed: mpsc::Sender<io::Result<File>>,
}

#[derive(Default)]
struct Told {
    failures: AtomicU64,
    /// Lines for which the queue had no place.
    lost: AtomicU64,
    is_failing: AtomicBool,
}

#[derive(Debug)]
enum Word {
    Line(Box<Entry>),
    Flush(oneshot::Sender<()>),
}

impl Log {
    /// Begins to write to this file, which may follow another; blocking, for a look at the other's end.
    ///
    /// # Errors
    /// When they are no files of a record.
    pub fn start(file: File, before: Option<&File>, terms: Terms, next: Next, tasks: &Tasks) -> io::Result<Self> {
        let kept = Kept::new(file, before)?;
        let (queue, words) = mpsc::channel(MOST_WAITING);
        let told = Arc::<Told>::default();
        let (placed, places) = mpsc::channel(MOST_PLACES);
        let writing = Writing {
            kept: Some(kept),
            words,
            terms,
            next,
            told: Arc::clone(&told),
            turns_after: 0,
            places,
            placed: None,
            nowhere: None,
        };
        tasks.start(writing.run());
        Ok(Self(Arc::new(Inner { queue, terms, told, placed })))
    }

    #[must_use]
    pub fn terms(&self) -> Terms {
        self.0.terms
    }

    /// A place for the line of a call that comes now; none when the call must not be served without one.
    #[must_use]
    pub fn place(&self) -> Option<Option<Slot>> {
        let slot = self.0.queue.clone().try_reserve_owned().ok().map(Slot);
        match slot {
            None if self.0.terms.refuses => None,
            Some(_) if self.0.terms.refuses && self.is_failing() => None,
            slot => Some(slot),
        }
    }

    /// Puts a line where its place is, or where there is one now.
    pub fn record(&self, slot: Option<Slot>, entry: Entry) {
        let word = Word::Line(Box::new(entry));
        match slot {
            Some(Slot(permit)) => drop(permit.send(word)),
            None if self.0.queue.try_send(word).is_err() => {
                self.0.told.failures.fetch_add(1, Ordering::Relaxed);
                self.0.told.lost.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }

    /// The file that is written to was moved or deleted: goes on in this one, or fails to write until there is one.
    pub async fn displaced(&self, fresh: io::Result<File>) {
        // Nobody writes any more once the process is ending.
        let _ = self.0.placed.send(fresh).await;
    }

    /// Whether the last attempt to write has failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.0.told.is_failing.load(Ordering::Relaxed)
    }

    /// Waits until all that was recorded is on the disk, or has failed to get there once more.
    pub async fn flushed(&self) {
        let (tell, told) = oneshot::channel();
        if self.0.queue.send(Word::Flush(tell)).await.is_ok() {
            let _ = told.await;
        }
    }

    /// Its metrics.
    #[must_use]
    pub fn collector(&self) -> Box<dyn Collector> {
        Box::new(Failures(Arc::clone(&self.0.told)))
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log(..)")
    }
}

struct Writing {
    /// Away while it is being written to.
    kept: Option<Kept>,
    words: mpsc::Receiver<Word>,
    terms: Terms,
    next: Next,
    told: Arc<Told>,
    /// Looks to let pass before the next turn is tried.
    turns_after: u32,
    places: mpsc::Receiver<io::Result<File>>,
    /// The file to go on in, in the place of one that was moved or deleted.
    placed: Option<File>,
    /// Why there is none.
    nowhere: Option<String>,
}

impl Writing {
    async fn run(mut self) {
        let mut ticks = interval(SYNC_PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut words = Vec::new();
        loop {
            let mut flushes = Vec::new();
            let failing = self.told.is_failing.load(Ordering::Relaxed);
            let is_tick = tokio::select! {
                // While writing fails lines stay in the queue, which has an end.
                count = self.words.recv_many(&mut words, MOST_BATCH), if !failing => {
                    if count == 0 {
                        let _ = self.write(Vec::new(), true).await;
                        return;
                    }
                    false
                }
                Some(placed) = self.places.recv() => {
                    match placed {
                        Ok(file) => (self.placed, self.nowhere) = (Some(file), None),
                        Err(fault) => self.nowhere = Some(fault.to_string()),
                    }
                    true
                }
                _ = ticks.tick() => true,
            };
            let mut lines = Vec::new();
            for word in words.drain(..) {
                match word {
                    Word::Line(entry) => lines.push(*entry),
                    Word::Flush(tell) => flushes.push(tell),
                }
            }
            let Some(()) = self.write(lines, is_tick || !flushes.is_empty()).await else { return };
            self.turn_if_due(is_tick).await;
            for tell in flushes {
                let _ = tell.send(());
            }
            // A write of its own for each line would cost a busy edge more than the calls' own reads and writes.
            sleep(GATHERING).await;
        }
    }

    /// Writes these and what is waiting. None when the process is ending.
    async fn write(&mut self, lines: Vec<Entry>, syncs: bool) -> Option<()> {
        let mut kept = self.kept.take()?;
        kept.take(lines);
        let lost = self.told.lost.load(Ordering::Relaxed);
        let (placed, nowhere) = (self.placed.take(), self.nowhere.clone());
        let (kept, written) = tokio::task::spawn_blocking(move || {
            if let Some(why) = nowhere {
                return (kept, Err(io::Error::other(why)));
            }
            if let Some(file) = placed {
                kept.go_on_after_loss(file);
            }
            let written = kept.write(lost).and_then(|()| if syncs { kept.sync() } else { Ok(()) });
            (kept, written)
        })
        .await
        .ok()?;
        self.kept = Some(kept);
        let was_failing = self.told.is_failing.swap(written.is_err(), Ordering::Relaxed);
        match written {
            Err(fault) => {
                self.told.failures.fetch_add(1, Ordering::Relaxed);
                if !was_failing {
                    let refuses = self.terms.refuses;
                    tracing::error!(%fault, refuses, "the record of calls cannot be written; it is tried again each second");
                }
            }
            Ok(()) if was_failing => tracing::info!("the record of calls is written again"),
            Ok(()) => {}
        }
        Some(())
    }

    /// Goes on in another file, where this one is full.
    async fn turn_if_due(&mut self, is_tick: bool) {
        if is_tick {
            self.turns_after = self.turns_after.saturating_sub(1);
        }
        let Some(kept) = &mut self.kept else { return };
        if self.turns_after > 0 || !kept.is_full(self.terms.rotate_bytes, self.terms.daily) {
            return;
        }
        match (self.next)().await {
            Ok(fresh) => {
                kept.go_on_in(fresh);
                // Its first line stands there at once: a file without one says nothing of the file before.
                self.write(Vec::new(), true).await;
            }
            Err(fault) => {
                tracing::error!(%fault, "the record of calls goes on in the same file: no other can be had");
                self.turns_after = TURN_PAUSE;
            }
        }
    }
}

#[derive(Clone)]
struct Failures(Arc<Told>);

impl Collector for Failures {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Attempts to write the record of calls that failed, and lines of it that were lost.";
        let told = to.encode_descriptor("playground_audit_write_failures", help, None, MetricType::Counter)?;
        ConstCounter::new(self.0.failures.load(Ordering::Relaxed)).encode(told)
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failures(..)")
    }
}

/// Eight times the exchanges that an edge has under way at most, unless it was told otherwise.
const MOST_WAITING: usize = 8192;
const MOST_BATCH: usize = 512;
const GATHERING: Duration = Duration::from_millis(5);
const SYNC_PAUSE: Duration = Duration::from_secs(1);

/// There is one look at the file's place a second.
const MOST_PLACES: usize = 4;

/// In looks, of which there is one a second.
const TURN_PAUSE: u32 = 60;
