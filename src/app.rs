//! A service from its configuration: what is bound, opened and read before the first child starts, and its run.
//!
//! [`build`] binds the listeners, takes the state, starts the children and waits until they are ready; [`App::run`]
//! serves until a signal. The children's own lives are [`edge_main`] and [`worker_main`].

mod asking;
mod changeable;
mod child;
mod edge_half;
mod edge_user;
mod fault;
mod listeners;
pub mod operate;
mod problems;
mod renewal;
mod secrets;
mod session_keys;
mod stores;
mod strict;
mod tls_files;
mod trust;
mod warnings;
pub mod words;
mod worker_half;

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use kit::tasks::Tasks;
use tokio::sync::mpsc;

use crate::admin::socket::{self, Listening, Place, SocketError};
use crate::config::{Config, Upstreams};
use crate::manager::{Notify, Sockets};
use crate::signal::{Hangups, StopSignals};
use crate::state::{Lock, StateDir, StateError};
use crate::supervise::{EdgePlan, Plan, Readiness, Supervisor, WorkerPlan};
use crate::worker::child::{Program, User};
use asking::{heed, operators};
use changeable::Changeable;
use fault::io;
use listeners::{bind, bound};
use stores::{absolute, loose, loose_at, oauth_file, record};
use words::{BeginEdge, BeginWorker, Upstream};

pub use crate::supervise::Outcome;
pub use changeable::{Again, WorkerFault};
pub use edge_half::edge_main;
pub use edge_user::NoUser;
pub use fault::BuildError;
pub use problems::problems;
pub use renewal::AcmeFault;
pub use secrets::{SecretError, bearer, fresh as fresh_token};
pub use session_keys::{KeyError, rotate as rotate_session_key};
pub use strict::StrictFault;
pub use tls_files::TlsFault;
pub use trust::TrustFault;
pub use warnings::warnings;
pub use worker_half::worker_main;

/// The hidden verbs of the children.
pub const EDGE: &str = "__edge";
/// The verb of the process that keeps one stdio server.
pub const STDIO_KEEPER: &str = "__stdio-keeper";
pub const WORKER: &str = "__worker";

/// A service whose children are ready.
#[derive(Debug)]
pub struct App {
    supervisor: Supervisor,
    readiness: Readiness,
    signals: StopSignals,
    scheme: &'static str,
    address: SocketAddr,
    redirect: Option<SocketAddr>,
    bearer: Option<SocketAddr>,
    native: usize,
    took: Duration,
    tasks: Tasks,
    socket: Option<PathBuf>,
    monitoring: Option<Place>,
    _lock: Option<Lock>,
}

/// Binds, opens and starts all that a configuration names. `handed` are sockets that are bound already, the first for
/// clients and the second for redirects; `manager` is told how it goes; `again` yields the configuration once more for a reload.
///
/// # Errors
/// When a part of it cannot be had; then nothing is left running.
pub async fn build(config: Config, handed: Sockets, manager: Notify, again: Again) -> Result<App, BuildError> {
    let began = kit::clock::now();
    // From here a signal ends the start in order.
    let mut signals = StopSignals::listen().map_err(io("listen for signals"))?;
    let hangups = Hangups::listen().map_err(io("listen for signals"))?;
    let program = Program::open().map_err(io("open the running program"))?;
    let lock = config.state.as_ref().map(|state| taken(|| state.lock())).transpose()?;
    manager.status("starting");
    let (listener, address) = bound(handed.first, config.bind)?;
    let redirect = config.redirect_bind.or_else(|| handed.second.as_ref()?.local_addr().ok());
    let redirect = redirect.map(|address| bound(handed.second, address)).transpose()?;
    let (redirect, redirect_address) = redirect.unzip();
    let (bearer, bearer_address) = config.bearer_bind.map(|address| bound(None, address)).transpose()?.unzip();
    let changeable::Read { stamps, read } = changeable::read(&config);
    let Changeable { native, elsewhere, tls, client_ca, limits, session_keys } = read?;
    let (acme, acme_file) = renewal::begin(&config)?.unzip();
    let count = native.len();
    let tasks = Tasks::new();
    let (ask, asked) = mpsc::channel(1);
    tasks.start(heed(hangups, ask.clone()));
    operators(&config, &tasks, ask)?;
    let monitoring = config.admin_socket.as_deref().map(|path| left(|| socket::listen_at(path))).transpose()?;
    let (monitoring, door) = monitoring.map(|Listening { listener, place }| (listener, place)).unzip();
    let user = edge_user(&config)?;
    let (sandbox, worker) = worker(&config, elsewhere, lock.as_ref())?;
    let session_keys = match session_keys {
        Some(keys) => keys,
        None => session_keys::ephemeral()?,
    };
    let recorded = record(&config);
    if let (Some(folder), Some(state)) = (&recorded, &config.state) {
        state.could_record(folder)?;
    }
    let tombstones = config.state.as_ref().map(|state| taken(|| state.tombstones())).transpose()?;
    let begin = BeginEdge {
        verbosity: config.verbosity.word(),
        limits,
        session_keys,
        store: config.credentials.display().to_string(),
        loose: loose(&config),
        oauth: config.oauth.as_ref().map(|oauth| words::OAuth {
            store: oauth.state.display().to_string(),
            loose: loose_at(&config, &oauth.state, StateDir::oauth),
            settings: oauth.settings.clone(),
        }),
        external: config.external.clone(),
        trust: trust::read(&config)?,
        backend: config.backend.clone(),
        sandbox,
        asks_sandbox: matches!(config.upstreams, Upstreams::Elsewhere { .. }),
        native,
        tls,
        client_ca,
        acme,
        audit: config.audit.as_ref().map(|audit| audit.terms),
    };
    for warning in warnings(&config) {
        tracing::warn!("{warning}");
    }
    let scheme = if config.speaks_tls() { "https" } else { "http" };
    let socket = config.state.as_ref().map(StateDir::operator_socket);
    let plan = Plan {
        program,
        edge: EdgePlan {
            role: EDGE,
            listener,
            user,
            begin,
            tombstones: tombstones.map(|files| files.map(OwnedFd::from)),
            monitoring,
            redirect: redirect.map(OwnedFd::from),
            bearer: bearer.map(OwnedFd::from),
            audit: recorded,
        },
        worker,
        credentials: absolute(&config.credentials)?,
        oauth: oauth_file(&config)?,
        acme: acme_file,
        last_used: config.state.as_ref().map(|state| state.path().to_owned()),
        serves_without_sandbox: count > 0 && !config.needs_sandbox,
        drain: config.limits.drain,
        manager,
        reread: changeable::reread(config, again),
        stamps,
    };
    let started = Supervisor::start(plan, asked, &mut signals).await;
    let (supervisor, readiness) = started.map_err(|ended| {
        door.iter().for_each(Place::give_up);
        BuildError::Ended(ended)
    })?;
    let took = kit::clock::now().saturating_duration_since(began);
    Ok(App {
        supervisor,
        readiness,
        signals,
        scheme,
        address,
        redirect: redirect_address,
        bearer: bearer_address,
        native: count,
        took,
        tasks,
        socket,
        monitoring: door,
        _lock: lock,
    })
}

impl App {
    /// Serves until a signal asks for the end.
    pub async fn run(mut self) -> Outcome {
        let serves = format!("{}://{} ({})", self.scheme, self.address, self.behind());
        self.supervisor.serves(&serves);
        let outcome = self.supervisor.run(&mut self.signals).await;
        self.tasks.abort();
        if let Some(socket) = &self.socket {
            // The state is still ours. What cannot be removed is told from a living socket by nobody listening.
            let _ = std::fs::remove_file(socket);
        }
        self.monitoring.iter().for_each(Place::give_up);
        outcome
    }

    /// How long [`build`] took.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// One line: where, what is behind it, and how long it took.
    #[must_use]
    pub fn ready_line(&self, took: Duration) -> String {
        format!("ready {}://{} ({}) in {} ms", self.scheme, self.address, self.behind(), took.as_millis())
    }

    fn behind(&self) -> String {
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let behind = match (self.readiness.sandboxes, self.native) {
            (Some(sandboxes), 0) => many(sandboxes, "sandbox tenant"),
            (Some(sandboxes), native) => {
                format!("{}, {}", many(sandboxes, "sandbox tenant"), many(native, "native worker"))
            }
            (None, native) => many(native, "native worker"),
        };
        let bearer = self.bearer.map(|address| format!("; {}://{address} for tokens alone", self.scheme));
        let plain = self.redirect.map(|plain| format!("; http://{plain} redirects"));
        format!("{behind}{}{}", bearer.unwrap_or_default(), plain.unwrap_or_default())
    }
}

fn edge_user(config: &Config) -> Result<Option<User>, BuildError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let place = config.state.as_ref().map_or(config.credentials.as_path(), |state| state.path());
    Ok(Some(edge_user::choose(&config.edge_user, &absolute(place)?)?))
}

/// The sandbox worker: how the edge reaches it, and how it is started where it is a child of ours.
fn worker(
    config: &Config,
    elsewhere: Option<Upstream>,
    lock: Option<&Lock>,
) -> Result<(Option<Upstream>, Option<WorkerPlan>), BuildError> {
    match (&config.upstreams, &config.state) {
        (Upstreams::Native { .. }, _) | (Upstreams::Sandbox { .. }, None) => Ok((None, None)),
        (Upstreams::Elsewhere { .. }, _) => Ok((elsewhere, None)),
        (Upstreams::Sandbox { kind, .. }, Some(state)) => {
            let listener = bind((Ipv4Addr::LOCALHOST, 0).into())?;
            let address = listener.local_addr().map_err(io("ask for the worker's address"))?;
            let secret = secrets::fresh()?;
            let (verbosity, kind) = (config.verbosity.word(), kind.clone());
            let begin = BeginWorker { verbosity, state: state.sandbox(), kind, secret: secret.clone() };
            let lock = lock.map(Lock::share).transpose().map_err(io("share the state's lock"))?;
            let plan = WorkerPlan { role: WORKER, listener, begin, lock };
            Ok((
                Some(Upstream { address, bearer: secret, up: false, terms: crate::worker::Terms::default() }),
                Some(plan),
            ))
        }
    }
}

/// Waits a little for a state whose last service is just ending: its worker holds on until its tenants are gone, its edge
/// until it has ended.
fn taken<T>(take: impl Fn() -> Result<T, StateError>) -> Result<T, StateError> {
    kit::patience::until(LOCK_WAIT, take, |fault| matches!(fault, StateError::Held(_)))
}

/// Waits a little for a socket whose last service was killed: its edge ends only when it has seen that.
fn left(listen: impl Fn() -> Result<Listening, SocketError>) -> Result<Listening, SocketError> {
    kit::patience::until(LOCK_WAIT, listen, |fault| matches!(fault, SocketError::InUse(_)))
}

/// A killed service's worker ends its tenants within two seconds.
const LOCK_WAIT: Duration = Duration::from_secs(3);
