//! The making of a bundle.
//!
//! ```text
//! fingerprint ─> in the cache? ─yes─────────────────────────────────────────────────────────────────────────> bundle
//!                 └no─> turn ─> record ─> builder: packages, Rust, programs ─> builder gone ─> keep, if nothing changed ─┘
//! ```
//!
//! The record is written before the builder is made and removed after it has gone, so that one that a killed process left is
//! known for ours. A machine that has the builder's name without a record is somebody else's: it is neither used nor removed.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::cache::{Bundle, Cache, CacheError, at, remove};
use super::error::BundleError;
use super::fingerprint::Fingerprint;
use super::harvest;
use super::output::Log;
use super::progress::{Event, Phase, Watch};
use super::recipe::{self, PROGRAMS};
use super::source::Source;
use super::turn::{Taken, Turn};
use crate::backend::BackendError;
use crate::backend::host::{Local, Runner};
use crate::backend::lima::{self, Builder};
use crate::folder;

/// What makes bundles, and finds those that were made.
pub struct Workshop {
    pub(super) cache: Cache,
    pub(super) builder: Builder,
    limit: Duration,
}

/// That there is a builder of ours.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    machine: String,
}

impl Workshop {
    /// One whose builder is made by `limactl`; a build may take as long as `limit`.
    ///
    /// # Errors
    /// When the settings cannot be meant.
    pub fn new(cache: Cache, settings: &lima::Settings, limit: Duration) -> Result<Self, BackendError> {
        let runner = Arc::new(Local::new(settings.surroundings.clone()));
        Self::over(cache, settings, limit, runner)
    }

    fn over(
        cache: Cache,
        settings: &lima::Settings,
        limit: Duration,
        runner: Arc<dyn Runner>,
    ) -> Result<Self, BackendError> {
        Ok(Self { cache, builder: Builder::of(settings, runner)?, limit })
    }

    /// The bundle of these sources: the one that there is, else a new one. Until it has ended the builder, this does not
    /// return, also when `stop` comes; so let it come to its end.
    ///
    /// # Errors
    /// When there is none and none can be made.
    pub async fn bundle(
        &self,
        source: &Source,
        watch: &Watch<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Bundle, BundleError> {
        let mut stop = pin!(stop);
        let fingerprint = timed(watch, Phase::Read, fingerprint(source)).await?;
        if let Some(bundle) = self.find(&fingerprint).await? {
            watch(Event::Found(bundle.path()));
            self.tidy(watch).await;
            return Ok(bundle);
        }
        let turn = tokio::select! {
            turn = self.turn(&fingerprint, watch) => turn?,
            () = &mut stop => return Err(BundleError::Interrupted),
        };
        // Whoever had it may have built just this.
        if let Some(bundle) = self.find(&fingerprint).await? {
            watch(Event::Found(bundle.path()));
            return Ok(bundle);
        }
        self.sweep(&turn, watch).await?;
        if self.builder.exists().await? {
            return Err(BundleError::Stranger { machine: self.builder.name().to_owned() });
        }
        let building = async { timeout(self.limit, self.build(&fingerprint, source, watch)).await };
        let built = tokio::select! {
            built = building => built.unwrap_or_else(|_elapsed| Err(BundleError::Late { limit: self.limit, log: self.cache.log(&fingerprint) })),
            () = &mut stop => Err(BundleError::Interrupted),
        };
        let removed = timed(watch, Phase::Remove, self.remove(&self.builder)).await;
        if matches!(built, Err(BundleError::Interrupted)) {
            // Nobody is told of it. One that stays is removed with others that nobody needs.
            let _ = remove(&self.cache.log(&fingerprint));
        }
        let kept = match built {
            Ok(()) => timed(watch, Phase::Keep, self.keep(&fingerprint, source)).await,
            Err(fault) => Err(fault),
        };
        let tidied = match &removed {
            Ok(()) => self.forget().await,
            Err(_) => Ok(()),
        };
        match (kept, removed) {
            (Ok(()), Ok(())) => tidied?,
            (Ok(()), Err(fault)) => watch(Event::Left(&kit::chain(&fault))),
            (Err(fault), Ok(())) => return Err(fault),
            (Err(fault), Err(left)) => {
                return Err(BundleError::Left { left: kit::chain(&left), source: Box::new(fault) });
            }
        }
        self.find(&fingerprint).await?.ok_or(BundleError::Gone { path: self.cache.place(fingerprint.short()) })
    }

    async fn find(&self, fingerprint: &Fingerprint) -> Result<Option<Bundle>, BundleError> {
        let (cache, fingerprint) = (self.cache.clone(), fingerprint.clone());
        Ok(blocking(move || cache.find(&fingerprint, &PROGRAMS)).await?)
    }

    /// Waits for the turn as long as whoever has it may build.
    async fn turn(&self, fingerprint: &Fingerprint, watch: &Watch<'_>) -> Result<Turn, BundleError> {
        let began = kit::clock::now();
        let mut told = String::new();
        loop {
            match Turn::take(&self.cache, Some(fingerprint))? {
                Ok(turn) => return Ok(turn),
                Err(Taken(holder)) if kit::clock::now().saturating_duration_since(began) >= self.limit => {
                    return Err(BundleError::Busy { holder, waited: self.limit });
                }
                Err(Taken(holder)) => {
                    if holder != told {
                        watch(Event::Waiting(&holder));
                        told = holder;
                    }
                }
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Removes what a killed process left of a builder, which the turn says that nobody uses.
    pub(super) async fn sweep(&self, _turn: &Turn, watch: &Watch<'_>) -> Result<(), BundleError> {
        if let Some(left) = self.recorded()? {
            watch(Event::Sweeping(left.name()));
            self.remove(&left).await?;
        }
        self.forget().await
    }

    /// The same where nothing is to be built, as far as it can be done.
    async fn tidy(&self, watch: &Watch<'_>) {
        if matches!(self.recorded(), Ok(None)) {
            return;
        }
        if let Ok(Ok(turn)) = Turn::take(&self.cache, None)
            && let Err(fault) = self.sweep(&turn, watch).await
        {
            watch(Event::Left(&kit::chain(&fault)));
        }
    }

    /// The builder that there may be, by the record.
    fn recorded(&self) -> Result<Option<Builder>, BundleError> {
        let path = self.cache.record();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(at("read", &path)(fault).into()),
        };
        let record =
            serde_json::from_slice::<Record>(&text).ok().and_then(|record| self.builder.called(&record.machine));
        record.map(Some).ok_or(BundleError::Record { path })
    }

    async fn build(&self, fingerprint: &Fingerprint, source: &Source, watch: &Watch<'_>) -> Result<(), BundleError> {
        let template = timed(watch, Phase::Machine, async {
            let template = self.prepare(source)?;
            self.builder.make(&template).await?;
            Ok::<_, BundleError>(template)
        })
        .await;
        template?;
        let log = Log::begin(self.cache.log(fingerprint))
            .map_err(|fault| at("write", &self.cache.log(fingerprint))(fault))?;
        let most = recipe::locked(&source.lock());
        for (phase, words) in recipe::steps(source.name()) {
            timed(watch, phase, log.follow(&self.builder, (phase, words), most, watch)).await?;
        }
        log.remove();
        Ok(())
    }

    /// Makes what the builder finds, and says on disk that there will be one.
    fn prepare(&self, source: &Source) -> Result<PathBuf, BundleError> {
        let (work, scratch) = (self.cache.work(), self.cache.scratch());
        for path in [&work, &scratch] {
            folder::own(path).map_err(at("make", path))?;
        }
        let text = self.builder.template(source.root(), &scratch, std::env::consts::OS)?;
        let template = self.cache.template();
        kit::durable::replace(&template, 0o600, text.as_bytes()).map_err(at("write", &template))?;
        let path = self.cache.record();
        let text = record(&self.builder).map_err(|fault| at("write", &path)(fault))?;
        kit::durable::replace(&path, 0o600, &text).map_err(at("write", &path))?;
        Ok(template)
    }

    async fn remove(&self, builder: &Builder) -> Result<(), BackendError> {
        // One that never came to be made has no record, and is not looked for.
        if self.cache.record().exists() { builder.remove().await } else { Ok(()) }
    }

    /// Takes what was built, if it was built of what the fingerprint says.
    async fn keep(&self, fingerprint: &Fingerprint, source: &Source) -> Result<(), BundleError> {
        let (cache, scratch) = (self.cache.clone(), self.cache.scratch());
        let (wanted, source) = (fingerprint.clone(), source.clone());
        blocking(move || {
            let staged = cache.stage(&wanted)?;
            for program in PROGRAMS {
                harvest::take(&scratch, program, &staged.join(program))
                    .map_err(|source| BundleError::NotMade { program, source })?;
            }
            if Fingerprint::of(&source, &recipe::text())? != wanted {
                remove(&staged)?;
                return Err(BundleError::Changed { folder: source.folder().to_owned() });
            }
            Ok(cache.complete(&wanted)?)
        })
        .await
    }

    /// Removes what the builder worked on, and then the record of it.
    async fn forget(&self) -> Result<(), BundleError> {
        let (work, record) = (self.cache.work(), self.cache.record());
        blocking(move || -> Result<(), CacheError> {
            remove(&work)?;
            remove(&record)
        })
        .await?;
        Ok(())
    }
}

/// What says that there is this builder.
pub(super) fn record(builder: &Builder) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Record { machine: builder.name().to_owned() })?)
}

/// What the sources are told apart by, as this release builds them.
///
/// # Errors
/// When not everything can be read.
pub async fn fingerprint(source: &Source) -> Result<Fingerprint, BundleError> {
    let source = source.clone();
    blocking(move || Ok(Fingerprint::of(&source, &recipe::text())?)).await
}

/// Does what blocks where that is allowed.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(fault) => std::panic::resume_unwind(fault.into_panic()),
    }
}

async fn timed<T, E>(watch: &Watch<'_>, phase: Phase, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let began = kit::clock::now();
    watch(Event::Begun(phase));
    let done = work.await?;
    watch(Event::Ended(phase, kit::clock::now().saturating_duration_since(began)));
    Ok(done)
}

/// Nobody is told when a turn ends.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
