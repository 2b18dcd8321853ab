//! The faculties that machines mount: their bundle is there before anybody makes one.

use std::path::PathBuf;
use std::time::Duration;

use sandbox::backend::Kind;
use sandbox::bundle::{Bundle, BundleError, Cache, Event, Phase, Source, Workshop};

use super::backend::{Backend, variable};
use super::failure::{Code, Failure};
use super::say;
use super::teller::{Doing, Teller};
#[cfg(feature = "mcp-http")]
use crate::config::{Config, Upstreams};
#[cfg(feature = "mcp-http")]
use crate::manager::Notify;
#[cfg(feature = "mcp-http")]
use crate::signal::StopSignals;

/// A backend that has all that it was told to have.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) kind: Kind,
    pub(super) held: Option<Held>,
}

/// A bundle that nobody removes while this is there.
#[derive(Debug)]
pub(super) struct Held {
    bundle: Bundle,
}

/// Makes the bundle of the faculties whose sources were named, unless there is one; `stop` breaks that off, and `doing`
/// says what is done.
pub(super) async fn ready(
    backend: &Backend,
    kind: Kind,
    stop: impl Future<Output = ()>,
    doing: &Doing,
) -> Result<Ready, Failure> {
    let mut settings = match kind {
        Kind::Lima(settings) => settings,
        kind @ (Kind::Linux | Kind::Jail(_)) => {
            if backend.faculties_src().is_some() {
                say::talk(&format!(
                    "warning: --faculties-src is for machines of the lima backend; with {} it does nothing, and the setting faculties names a folder of built ones",
                    kind.name(),
                ));
            }
            return Ok(Ready { kind, held: None });
        }
    };
    let Some(folder) = settings.faculties_src.clone() else {
        return Ok(Ready { kind: Kind::Lima(settings), held: None });
    };
    let source = Source::open(&folder).map_err(|fault| failure(fault.into()))?;
    let workshop = Workshop::new(cache()?, &settings, LIMIT);
    let workshop = workshop.map_err(|fault| Failure::new(fault).code(Code::Configuration))?;
    let (bundle, _) = make(&workshop, &source, stop, doing).await.map_err(failure)?;
    let held = Held { bundle };
    settings.faculties = Some(held.bundle.path().to_owned());
    Ok(Ready { kind: Kind::Lima(settings), held: Some(held) })
}

/// The same for a service that is about to start, whose manager waits as long as a build may take.
#[cfg(feature = "mcp-http")]
pub(super) async fn serving(
    backend: &Backend,
    config: Config,
    manager: &Notify,
) -> Result<(Config, Option<Held>), Failure> {
    let Upstreams::Sandbox { kind, manifest } = config.upstreams else { return Ok((config, None)) };
    let doing = Doing::default();
    let making = ready(backend, kind, stopped(), &doing);
    let Ready { kind, held } = manager.during(|| doing.words(), making).await?;
    Ok((Config { upstreams: Upstreams::Sandbox { kind, manifest }, ..config }, held))
}

/// Makes a bundle unless it is there, and tells the person who waits how far it is; whether it was made now.
pub(super) async fn make(
    workshop: &Workshop,
    source: &Source,
    stop: impl Future<Output = ()>,
    doing: &Doing,
) -> Result<(Bundle, bool), BundleError> {
    let (teller, built) = (Teller::new(), std::sync::atomic::AtomicBool::new(false));
    let watch = |event: Event<'_>| {
        if matches!(event, Event::Begun(Phase::Machine)) {
            built.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        doing.hear(&event);
        teller.tell(event);
    };
    let bundle = workshop.bundle(source, &watch, stop).await?;
    Ok((bundle, built.into_inner()))
}

/// A signal to stop. This process heeds none before it is waited for.
#[cfg(feature = "mcp-http")]
pub(super) async fn stopped() {
    match StopSignals::listen() {
        Ok(mut signals) => signals.next().await,
        // Then the system's default ends this process.
        Err(_) => std::future::pending().await,
    }
}

/// The bundles of this user.
pub(super) fn cache() -> Result<Cache, Failure> {
    let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    let base = base.ok_or_else(|| {
        Failure::message(Code::Usage, "there is no HOME to keep bundles in").hint("name a folder with XDG_CACHE_HOME")
    })?;
    // The original's name, with this host's architecture: machines have the same.
    let root = base.join("playground").join(format!("faculties-linux-{}", std::env::consts::ARCH));
    Cache::open(&root).map_err(Failure::new)
}

pub(super) fn failure(fault: BundleError) -> Failure {
    let code = match &fault {
        BundleError::Interrupted => Code::Interrupted,
        BundleError::Stranger { .. } => Code::Exists,
        BundleError::Source(_) => Code::Usage,
        BundleError::Cache(_)
        | BundleError::Host(_)
        | BundleError::Entered(_)
        | BundleError::Record { .. }
        | BundleError::Busy { .. }
        | BundleError::Failed { .. }
        | BundleError::Late { .. }
        | BundleError::NotMade { .. }
        | BundleError::Changed { .. }
        | BundleError::Gone { .. }
        | BundleError::Left { .. } => Code::Failed,
    };
    let remedy = fault.remedy();
    let failure = Failure::new(fault).code(code);
    match remedy {
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

/// The original's; a compiler and hundreds of crates on a small host.
pub(super) const LIMIT: Duration = Duration::from_secs(3600);
