//! The reading side, in the running service.
//!
//! At each question one inline `stat` tells whether the file is still the one that was read. If not, the file is opened
//! again and read off-thread, and the question waits for that; questions that come meanwhile wait for the same reading.
//! A change that is in place before a question is asked is therefore always seen. A file that cannot be read leaves the
//! last good reading standing, and is logged once.
//!
//! The descriptor of what was read stays open: it keeps the inode from being used again, so that no other file can pass
//! for it. A process that may open no path is told by it alone.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::tasks::Tasks;
use tokio::sync::watch;

use super::Document;
use super::fault::StoreError;
use super::reading::{self, Loose, ReadError, Stamp, Warning};

/// What stands in the file now, as a view of it; clones ask the same.
pub struct Watched<V>(Arc<Inner<V>>);

/// What a document becomes to be asked.
pub trait View: From<Self::Document> + Send + Sync + 'static {
    type Document: Document;

    /// How many entries it has, for the log.
    fn count(&self) -> usize;
}

/// How a fresh descriptor of the file is had.
pub enum Opener {
    /// By its path, where the process may open it.
    Path(PathBuf),
    /// From one who may. No descriptor means that there is no file, which is an empty document.
    Asked {
        /// What messages call the file.
        name: PathBuf,
        ask: Box<dyn Fn() -> Opening + Send + Sync>,
    },
}

/// The answer of one who was asked to open the file.
pub type Opening = Pin<Box<dyn Future<Output = io::Result<Option<OwnedFd>>> + Send>>;

struct Inner<V> {
    opener: Opener,
    loose: Loose,
    tasks: Tasks,
    state: Mutex<State<V>>,
    generation: watch::Sender<u64>,
}

struct State<V> {
    view: Arc<V>,
    warnings: Vec<Warning>,
    held: Held,
    /// Set while a reading is under way; its sender goes when that has ended.
    reading: Option<watch::Receiver<()>>,
    /// The last fault that was logged, with the state of the file that showed it: told once.
    logged: Option<(String, Option<Stamp>)>,
}

/// What the last reading was of.
enum Held {
    File {
        file: OwnedFd,
        stamp: Stamp,
        young: bool,
    },
    /// There was no file.
    Absent,
    /// It could not be opened.
    Nothing,
}

impl Held {
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::File { stamp, .. } => Some(*stamp),
            Self::Absent | Self::Nothing => None,
        }
    }
}

impl<V> State<V> {
    /// Whether this fault of this state of the file has not been told yet; from now on it has.
    fn is_news(&mut self, fault: &str) -> bool {
        let told = (fault.to_owned(), self.held.stamp());
        if self.logged.as_ref() == Some(&told) {
            return false;
        }
        self.logged = Some(told);
        true
    }
}

impl<V: View> Watched<V> {
    /// Reads the file for the first time; `tasks` owns the later readings.
    ///
    /// # Errors
    /// When it cannot be read: there is no good reading yet to fall back on, and an unreadable file is not an empty one.
    pub async fn load(opener: Opener, loose: Loose, tasks: Tasks) -> Result<Self, StoreError> {
        let state = State {
            view: Arc::new(V::from(V::Document::empty())),
            warnings: Vec::new(),
            held: Held::Nothing,
            reading: None,
            logged: None,
        };
        let generation = watch::Sender::new(0);
        let inner = Inner { opener, loose, tasks, state: Mutex::new(state), generation };
        let (held, read) = inner.read().await;
        let read = read.map_err(|fault| inner.named(fault))?;
        inner.install(held, Ok(read));
        Ok(Self(Arc::new(inner)))
    }

    /// What was read last; who must not miss a change asks after [`Watched::refresh`].
    #[must_use]
    pub fn view(&self) -> Arc<V> {
        Arc::clone(&self.0.state().view)
    }

    /// Makes sure that what counts now is what stands in the file now.
    ///
    /// Dropping the future leaves a reading that has begun to run to its end.
    pub async fn refresh(&self) {
        // A reading that had begun before we came may have missed what was in place when we came; the second look, or
        // the reading that it leads to, cannot.
        for _ in 0..2 {
            let Some(Waiting { mut ended, began }) = self.reading_if_stale() else { return };
            while ended.changed().await.is_ok() {}
            if began {
                return;
            }
        }
    }

    /// Refreshes for ever, for who wants to hear of a change without asking.
    pub async fn keep_fresh(&self, every: Duration) {
        loop {
            self.refresh().await;
            tokio::time::sleep(every).await;
        }
    }

    /// Changes whenever another view is there.
    #[must_use]
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.0.generation.subscribe()
    }

    /// What an operator should know about the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        self.0.state().warnings.clone()
    }

    /// Whether a question would be answered without another reading.
    #[cfg(test)]
    pub(crate) fn is_fresh(&self) -> bool {
        let state = self.0.state();
        state.reading.is_none() && self.0.is_fresh(&state.held)
    }

    /// The fault that was told last, with the state of the file that showed it.
    #[cfg(test)]
    pub(crate) fn last_fault(&self) -> Option<(String, String)> {
        self.0.state().logged.clone().map(|(fault, stamp)| (fault, format!("{stamp:?}")))
    }

    #[cfg(test)]
    pub(crate) fn would_tell(&self, fault: &str) -> bool {
        self.0.state().is_news(fault)
    }

    fn reading_if_stale(&self) -> Option<Waiting> {
        let inner = &self.0;
        let mut state = inner.state();
        if let Some(ended) = &state.reading {
            return Some(Waiting { ended: ended.clone(), began: false });
        }
        if inner.is_fresh(&state.held) {
            return None;
        }
        let (running, ended) = watch::channel(());
        state.reading = Some(ended.clone());
        drop(state);
        let task = Running { inner: Arc::clone(inner), _running: running };
        inner.tasks.start(async move {
            let (held, read) = task.inner.read().await;
            task.inner.install(held, read);
        });
        Some(Waiting { ended, began: true })
    }
}

struct Waiting {
    ended: watch::Receiver<()>,
    /// Whether this question began the reading.
    began: bool,
}

/// Ends the wait for a reading, also when its task was aborted.
struct Running<V> {
    inner: Arc<Inner<V>>,
    _running: watch::Sender<()>,
}

impl<V> Drop for Running<V> {
    fn drop(&mut self) {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner).reading = None;
    }
}

type Read<V> = Result<(V, Vec<Warning>), ReadFault>;

enum ReadFault {
    Read(ReadError),
    Late,
    BrokeOff,
}

impl<V: View> Inner<V> {
    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one blocking call on the path of a request: a `stat` of a file whose inode the kernel holds.
    fn is_fresh(&self, held: &Held) -> bool {
        let now = match (&self.opener, held) {
            (_, Held::Nothing) | (Opener::Asked { .. }, Held::Absent) => return false,
            // By the path, since a link in it may lead elsewhere now while the file that is held stays.
            (Opener::Path(path), _) => rustix::fs::stat(path),
            (Opener::Asked { .. }, Held::File { file, .. }) => rustix::fs::fstat(file),
        };
        match (now, held) {
            (Ok(now), Held::File { stamp, young, .. }) => !young && stamp.is_linked() && Stamp::of(&now) == *stamp,
            (Err(rustix::io::Errno::NOENT), Held::Absent) => true,
            (Ok(_) | Err(_), Held::File { .. } | Held::Absent | Held::Nothing) => false,
        }
    }

    async fn read(&self) -> (Held, Read<V>) {
        let opened = match tokio::time::timeout(OPEN_WAIT, self.open()).await {
            Ok(opened) => opened,
            Err(_) => return (Held::Nothing, Err(ReadFault::Late)),
        };
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => return (Held::Absent, Ok((V::from(V::Document::empty()), Vec::new()))),
            Err(fault) => return (Held::Nothing, Err(ReadFault::Read(ReadError::Open(fault)))),
        };
        let loose = self.loose;
        let read = tokio::task::spawn_blocking(move || read_file(file, loose)).await;
        read.unwrap_or((Held::Nothing, Err(ReadFault::BrokeOff)))
    }

    async fn open(&self) -> io::Result<Option<OwnedFd>> {
        match &self.opener {
            Opener::Path(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || reading::open(&path)).await.map_err(io::Error::other)?
            }
            Opener::Asked { ask, .. } => ask().await,
        }
    }

    /// A view that was read takes the place of the last; a fault is told once and changes nothing.
    fn install(&self, held: Held, read: Read<V>) {
        let mut state = self.state();
        let still_absent = matches!((&state.held, &held), (Held::Absent, Held::Absent));
        state.held = held;
        match read {
            // Where the file is asked for, each question asks again while there is none: that is no news.
            Ok(_) if still_absent => {}
            Ok((view, warnings)) => {
                let again = state.logged.take().is_some();
                let count = view.count();
                state.view = Arc::new(view);
                state.warnings = warnings;
                drop(state);
                self.generation.send_modify(|generation| *generation = generation.wrapping_add(1));
                tracing::info!(store = %self.name().display(), count, again, "read the {}", V::Document::CALLED);
            }
            Err(fault) => {
                let fault = kit::chain(&self.named(fault));
                if !state.is_news(&fault) {
                    return;
                }
                let count = state.view.count();
                drop(state);
                tracing::error!(fault, count, "the last good {} goes on counting", V::Document::CALLED);
            }
        }
    }

    fn named(&self, fault: ReadFault) -> StoreError {
        let (called, path) = (V::Document::CALLED, self.name().clone());
        match fault {
            ReadFault::Read(source) => StoreError::Unreadable { called, path, source },
            ReadFault::Late => StoreError::Late { called, path, within: OPEN_WAIT },
            ReadFault::BrokeOff => StoreError::BrokeOff { called, path },
        }
    }

    fn name(&self) -> &PathBuf {
        match &self.opener {
            Opener::Path(path) => path,
            Opener::Asked { name, .. } => name,
        }
    }
}

fn read_file<V: View>(file: OwnedFd, loose: Loose) -> (Held, Read<V>) {
    // Before the reading, so that a change during it is a change of what is held.
    let before = match reading::stat(&file) {
        Ok(stat) => Stamp::of(&stat),
        Err(fault) => return (Held::Nothing, Err(ReadFault::Read(fault))),
    };
    let read = reading::read::<V::Document>(&file, loose);
    let stamp = read.as_ref().map_or(before, |reading| reading.stamp);
    // A broken file is held like a good one, so that it is not parsed again until it changes.
    let held = Held::File { file, stamp, young: stamp.is_young(kit::clock::since_epoch()) };
    let read = read.map_err(ReadFault::Read).map(|reading| {
        let warnings = reading.loose.into_iter().chain(reading.document.warning()).collect();
        (V::from(reading.document), warnings)
    });
    (held, read)
}

/// How long the one who may open the file may take for it.
const OPEN_WAIT: Duration = Duration::from_secs(5);

impl<V> Clone for Watched<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
