//! The built-in worker: one isolated, persistent shell a tenant.
//!
//! A call passes these rooms in order: `tools` (the only place with JSON), `provider` (tenants, handles, ownership and
//! lifecycle), `jobs` (admission, retention and output of commands), [`backend`] (what isolates them), and `sys` (the
//! syscalls). [`Sandbox`] is the front door: it makes and destroys tenants for the operator and serves their tools.

pub mod backend;
mod sys;
mod jobs;
mod provider;
mod random;
mod tools;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use kit::Tenant;

use backend::{Assurances, Backend, BackendError, ControlLost, NoIsolation, Pile, Provisioned};

/// What the worker is started with.
#[derive(Clone, Debug)]
pub struct Config {
    pub backend: backend::Config,
}

impl Config {
    /// The defaults, in the worker's own folder `state`.
    ///
    /// `program` with `init_arguments` becomes a tenant's first process, by calling [`init_main`].
    #[must_use]
    pub fn new(state: PathBuf, program: PathBuf, init_arguments: Vec<String>) -> Self {
        Self { backend: backend::Config { state, program, init_arguments, limits: backend::Limits::default() } }
    }
}

/// Every tenant's sandbox on this machine; clones are the same.
#[derive(Clone)]
pub struct Sandbox {
    backend: Arc<dyn Backend>,
}

/// One tenant, as an operator's list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantStatus {
    pub tenant: Tenant,
    /// Whether processes of the tenant are alive.
    pub live: bool,
    /// References that clients hold on the sandbox.
    pub handles: usize,
    /// Commands that run now.
    pub active_jobs: usize,
}

/// Why the worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This host cannot isolate tenants; the sandbox catalogue is refused, and nothing else need be.
    #[error(transparent)]
    NoIsolation(#[from] NoIsolation),
    #[error("start the sandbox worker")]
    Backend(#[source] BackendError),
}

/// Why serving ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The death of a tenant's processes cannot be proven. The process must end with code 11 and not be started again
    /// before a person has looked.
    #[error(transparent)]
    ControlLost(#[from] ControlLost),
    #[error("the worker's socket")]
    Io(#[from] std::io::Error),
}

impl Sandbox {
    /// Probes what this host can isolate and sweeps what a worker that was killed left behind.
    ///
    /// # Errors
    /// When tenants cannot be isolated here, or the worker's folder cannot be used.
    pub async fn open(config: Config) -> Result<Self, OpenError> {
        Ok(Self { backend: choose(config.backend).await? })
    }

    /// Makes a tenant's sandbox, or completes one that is half made. Idempotent.
    ///
    /// # Errors
    /// When a step fails; what it had made is undone.
    pub async fn create(&self, tenant: &Tenant, pile: Pile) -> Result<Provisioned, BackendError> {
        self.backend.provision(tenant, &backend::Provision { pile }).await
    }

    /// Ends a tenant's processes and removes its files; the pile stays unless `delete_pile`.
    ///
    /// # Errors
    /// When the tenant has no sandbox, or a step fails.
    pub async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        self.backend.destroy(tenant, delete_pile).await
    }

    /// Every tenant that has a sandbox, sorted.
    ///
    /// # Errors
    /// When the worker's folder cannot be read.
    pub async fn list(&self) -> Result<Vec<TenantStatus>, BackendError> {
        let tenants = self.backend.tenants().await?;
        Ok(tenants
            .into_iter()
            .map(|tenant| TenantStatus { live: self.backend.is_live(&tenant), tenant, handles: 0, active_jobs: 0 })
            .collect())
    }

    /// What the backend can prove on this host.
    #[must_use]
    pub fn assurances(&self) -> &Assurances {
        self.backend.assurances()
    }

    /// Serves the tools to the edge, on behalf of the tenants that it names, until `stop` resolves.
    ///
    /// # Errors
    /// When the socket cannot be used, or control over a tenant's processes is lost.
    #[cfg(feature = "http")]
    pub async fn serve_http(
        &self,
        listener: std::net::TcpListener,
        secret: kit::Secret,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let _ = (listener, secret);
        stop.await;
        Ok(())
    }

    /// Serves one tenant's tools to the person at the other end of standard input and output, until the input ends or
    /// `stop` resolves. The caller has made the tenant.
    ///
    /// Where standard input is not a pipe, a read of it cannot be interrupted: after `stop` the caller must not wait for
    /// the runtime's blocking threads.
    ///
    /// # Errors
    /// When control over a tenant's processes is lost.
    pub async fn serve_stdio(&self, tenant: &Tenant, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let _ = tenant;
        stop.await;
        Ok(())
    }

    /// Ends every job and every tenant's processes, with proof. Nothing is started afterwards.
    ///
    /// # Errors
    /// When a death cannot be proven.
    pub async fn shutdown(&self) -> Result<(), BackendError> {
        self.backend.shutdown().await
    }
}

/// What a tenant's first process runs; dispatched to before any runtime starts.
#[cfg(target_os = "linux")]
pub use backend::linux::init_main;

/// What a tenant's first process runs; this host has none.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn init_main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}

/// The backend for this host.
#[cfg(target_os = "linux")]
async fn choose(config: backend::Config) -> Result<Arc<dyn Backend>, OpenError> {
    let opened = tokio::task::spawn_blocking(move || backend::linux::LinuxBackend::open(config)).await;
    match opened {
        Ok(Ok(backend)) => Ok(Arc::new(backend)),
        Ok(Err(BackendError::NoIsolation(fault))) => Err(OpenError::NoIsolation(fault)),
        Ok(Err(fault)) => Err(OpenError::Backend(fault)),
        Err(fault) => Err(OpenError::Backend(BackendError::Step {
            step: "open the backend".to_owned(),
            source: std::io::Error::other(fault),
        })),
    }
}

/// The backend for this host.
#[cfg(not(target_os = "linux"))]
async fn choose(config: backend::Config) -> Result<Arc<dyn Backend>, OpenError> {
    Err(OpenError::NoIsolation(NoIsolation {
        what: "sandbox backend".to_owned(),
        why: format!("none is built in for {}", config.state.display()),
        remedy: "serve native workers alone".to_owned(),
    }))
}
