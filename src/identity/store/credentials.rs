//! The reading side of the store, in the running edge.
//!
//! At each question one inline `stat` tells whether the file is still the one that was read. If not, the file is opened
//! again and read off-thread, and the question waits for that; questions that come meanwhile wait for the same reading.
//! A revocation that is in place before a token is presented is therefore always seen. A file that cannot be read
//! leaves the last good set standing, and is logged once.
//!
//! The descriptor of what was read stays open: it keeps the inode from being used again, so that no other file can pass
//! for it. An edge that may open no path is told by it alone.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::tasks::Tasks;
use kit::{Secret, Tenant};
use tokio::sync::watch;

use crate::identity::{Catalogue, CredentialId, Principal};

use super::fault::StoreError;
use super::reading::{self, Loose, ReadError, Stamp, Warning};
use super::set::{Entry, Grant, Set};

/// The credentials that count now; clones ask the same.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

/// How a fresh descriptor of the store is had.
pub enum Opener {
    /// By its path, where the process may open it.
    Path(PathBuf),
    /// From one who may. No descriptor means that there is no file, which is an empty store.
    Asked {
        /// What messages call the file.
        name: PathBuf,
        ask: Box<dyn Fn() -> Opening + Send + Sync>,
    },
}

/// The answer of one who was asked to open the store.
pub type Opening = Pin<Box<dyn Future<Output = io::Result<Option<OwnedFd>>> + Send>>;

/// What a credential of the original's form is worth, since it does not name its catalogue.
pub struct ClearRule {
    /// The server's `--backend`; a credential for another is refused.
    pub backend: String,
    /// Which catalogue the tenant has on this server.
    pub catalogue: Box<dyn Fn(&Tenant) -> Catalogue + Send + Sync>,
}

/// Who presented a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Known(Principal),
    Unknown,
    /// One of the original's form, for another backend than this server's.
    WrongBackend {
        credential: CredentialId,
        tenant: Tenant,
    },
}

struct Inner {
    opener: Opener,
    rule: ClearRule,
    loose: Loose,
    tasks: Tasks,
    state: Mutex<State>,
    generation: watch::Sender<u64>,
}

struct State {
    set: Arc<Set>,
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

impl State {
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

impl Credentials {
    /// Reads the store for the first time; `tasks` owns the later readings.
    ///
    /// # Errors
    /// When the store cannot be read: there is no good set yet to fall back on, and an unreadable store is not an empty
    /// one.
    pub async fn load(opener: Opener, rule: ClearRule, loose: Loose, tasks: Tasks) -> Result<Self, StoreError> {
        let state = State {
            set: Arc::new(Set::empty()),
            warnings: Vec::new(),
            held: Held::Nothing,
            reading: None,
            logged: None,
        };
        let generation = watch::Sender::new(0);
        let inner = Inner { opener, rule, loose, tasks, state: Mutex::new(state), generation };
        let (held, read) = inner.read().await;
        let read = read.map_err(|fault| inner.named(fault))?;
        inner.install(held, Ok(read));
        Ok(Self(Arc::new(inner)))
    }

    /// Says who presented this token.
    pub async fn authenticate(&self, token: &Secret) -> Verdict {
        self.refresh().await;
        // An empty token is no token, whatever a store says.
        if token.expose().is_empty() {
            return Verdict::Unknown;
        }
        let set = Arc::clone(&self.0.state().set);
        set.find(token.expose()).map_or(Verdict::Unknown, |entry| self.0.rule.judge(entry))
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

    /// Refreshes for ever, for streams that stay open while nobody presents a token.
    pub async fn keep_fresh(&self, every: Duration) {
        loop {
            self.refresh().await;
            tokio::time::sleep(every).await;
        }
    }

    /// Whether the principal's credential stands in the set that was read last; cheap, and asks nobody.
    #[must_use]
    pub fn is_live(&self, principal: &Principal) -> bool {
        let set = Arc::clone(&self.0.state().set);
        set.has(principal.credential(), principal.tenant())
    }

    /// Changes whenever another set has been read; a stream then asks [`Credentials::is_live`].
    #[must_use]
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.0.generation.subscribe()
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.state().set.count()
    }

    /// What an operator should know about the file.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        self.0.state().warnings.clone()
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
struct Running {
    inner: Arc<Inner>,
    _running: watch::Sender<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.inner.state().reading = None;
    }
}

type Read = Result<(Set, Vec<Warning>), ReadFault>;

enum ReadFault {
    Read(ReadError),
    Late,
    BrokeOff,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
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

    async fn read(&self) -> (Held, Read) {
        let opened = match tokio::time::timeout(OPEN_WAIT, self.open()).await {
            Ok(opened) => opened,
            Err(_) => return (Held::Nothing, Err(ReadFault::Late)),
        };
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => return (Held::Absent, Ok((Set::empty(), Vec::new()))),
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

    /// A set that was read takes the place of the last; a fault is told once and changes nothing.
    fn install(&self, held: Held, read: Read) {
        let mut state = self.state();
        let still_absent = matches!((&state.held, &held), (Held::Absent, Held::Absent));
        state.held = held;
        match read {
            // Where the file is asked for, each question asks again while there is none: that is no news.
            Ok(_) if still_absent => {}
            Ok((set, warnings)) => {
                let again = state.logged.take().is_some();
                let count = set.count();
                state.set = Arc::new(set);
                state.warnings = warnings;
                drop(state);
                self.generation.send_modify(|generation| *generation = generation.wrapping_add(1));
                tracing::info!(store = %self.name().display(), count, again, "read the credential store");
            }
            Err(fault) => {
                let fault = chain(&self.named(fault));
                if !state.is_news(&fault) {
                    return;
                }
                let count = state.set.count();
                drop(state);
                tracing::error!(fault, count, "the last good credentials go on counting");
            }
        }
    }

    fn named(&self, fault: ReadFault) -> StoreError {
        let path = self.name().clone();
        match fault {
            ReadFault::Read(source) => StoreError::Unreadable { path, source },
            ReadFault::Late => StoreError::Late { path, within: OPEN_WAIT },
            ReadFault::BrokeOff => StoreError::BrokeOff { path },
        }
    }

    fn name(&self) -> &PathBuf {
        match &self.opener {
            Opener::Path(path) => path,
            Opener::Asked { name, .. } => name,
        }
    }
}

impl ClearRule {
    fn judge(&self, entry: &Entry) -> Verdict {
        let catalogue = match &entry.grant {
            Grant::Catalogue(catalogue) => *catalogue,
            Grant::Backend(backend) if *backend == self.backend => (self.catalogue)(&entry.tenant),
            Grant::Backend(_) => {
                return Verdict::WrongBackend { credential: entry.id.clone(), tenant: entry.tenant.clone() };
            }
        };
        Verdict::Known(Principal::new(entry.tenant.clone(), catalogue, entry.id.clone()))
    }
}

fn read_file(file: OwnedFd, loose: Loose) -> (Held, Read) {
    // Before the reading, so that a change during it is a change of what is held.
    let before = match reading::stat(&file) {
        Ok(stat) => Stamp::of(&stat),
        Err(fault) => return (Held::Nothing, Err(ReadFault::Read(fault))),
    };
    let read = reading::read(&file, loose);
    let stamp = read.as_ref().map_or(before, |reading| reading.stamp);
    // A broken file is held like a good one, so that it is not parsed again until it changes.
    let held = Held::File { file, stamp, young: stamp.is_young(kit::clock::since_epoch()) };
    let read = read.map_err(ReadFault::Read).map(|reading| {
        let set = Set::from(reading.document);
        let clear = (set.clear() > 0).then(|| Warning::Clear(set.clear()));
        let warnings = reading.loose.into_iter().chain(clear).collect();
        (set, warnings)
    });
    (held, read)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// How long the one who may open the store may take for it.
const OPEN_WAIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
