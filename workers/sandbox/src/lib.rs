//! The built-in worker: one isolated, persistent shell a tenant.
//!
//! A call passes these rooms in order: `tools` (the only place with JSON), `provider` (tenants, handles, ownership and
//! lifecycle), `jobs` (admission, retention and output of commands), [`backend`] (what isolates them), and `sys` (the
//! syscalls). [`Sandbox`] is the front door: it makes and destroys tenants for the operator and serves their tools.

pub mod backend;
pub mod bundle;
mod folder;
mod jobs;
mod operator;
mod provider;
mod random;
pub mod reap;
pub mod settings;
mod sys;
mod tools;
mod trial;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use kit::Tenant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use backend::{
    Assurances, Backend, BackendError, ControlLost, Found, Kind, NoIsolation, NotKept, OtherBackend, Pile, Provisioned,
    mark,
};
use provider::Provider;
use settings::{Clocks, Settings, SettingsError};
use tools::{Audience, Tools};

pub use jobs::output::Room;
pub use jobs::table::Limits as JobLimits;
pub use tools::catalogue::NAMES as TOOLS;
pub use trial::Trial;

/// What the worker is started with.
#[derive(Clone, Debug)]
pub struct Config {
    pub backend: backend::Config,
    pub jobs: JobLimits,
    pub clocks: Clocks,
}

impl Config {
    /// What `settings` lead to, in the worker's own folder `state`.
    ///
    /// `program` with `init_arguments` becomes a tenant's first process, by calling [`init_main`].
    #[must_use]
    pub fn new(state: PathBuf, program: PathBuf, init_arguments: Vec<String>, settings: Settings) -> Self {
        let clocks = settings.clocks();
        let jobs = JobLimits::from(&settings.jobs);
        let Settings { tenants: common, bootstrap_pile, .. } = settings;
        let kill_deadline = backend::KILL_DEADLINE;
        let kind = Kind::Linux;
        let backend = backend::Config { kind, state, program, init_arguments, kill_deadline, common, bootstrap_pile };
        Self { backend, jobs, clocks }
    }

    /// The same with another backend than this host's own.
    #[must_use]
    pub fn with(mut self, kind: Kind) -> Self {
        self.backend.kind = kind;
        self
    }

    /// The same, with the `settings.json` of that folder.
    ///
    /// # Errors
    /// When the file says something that it cannot say.
    pub fn load(state: PathBuf, program: PathBuf, init_arguments: Vec<String>) -> Result<Self, SettingsError> {
        let settings = Settings::load(&state)?;
        Ok(Self::new(state, program, init_arguments, settings))
    }
}

/// Every tenant's sandbox on this machine; clones are the same.
#[derive(Clone)]
pub struct Sandbox {
    provider: Provider,
    jobs: JobLimits,
    config: Arc<Config>,
    /// One trial at a time.
    trying: Arc<Semaphore>,
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
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The worker's folder is another backend's; nothing was changed.
    #[error(transparent)]
    OtherBackend(#[from] OtherBackend),
    /// What was decided for all can be kept by other backends alone.
    #[error("what {} decides for all tenants", file.display())]
    NotKept {
        file: PathBuf,
        #[source]
        source: NotKept,
    },
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
    /// When tenants cannot be isolated here, or the worker's folder cannot be used or is another backend's.
    pub async fn open(config: Config) -> Result<Self, OpenError> {
        mark::check(&config.backend.state, &config.backend.kind).map_err(OpenError::Backend)??;
        config
            .backend
            .kind
            .keeps(&config.backend.common)
            .map_err(|source| OpenError::NotKept { file: config.backend.state.join(settings::FILE), source })?;
        let backend = choose(config.backend.clone()).await?;
        let provider = Provider::new(backend, config.jobs.clone(), config.clocks);
        provider.watch_idle();
        Ok(Self { provider, jobs: config.jobs.clone(), config: Arc::new(config), trying: Arc::new(Semaphore::new(1)) })
    }

    /// Makes a tenant's sandbox, or completes one that is half made. Idempotent.
    ///
    /// # Errors
    /// When a step fails; what it had made is undone.
    pub async fn create(&self, tenant: &Tenant, pile: Pile) -> Result<Provisioned, BackendError> {
        self.bind()?;
        self.provider.create(tenant, pile).await
    }

    /// Ends a tenant's processes and removes its files; the pile stays unless `delete_pile`.
    ///
    /// # Errors
    /// When the tenant has no sandbox, or a step fails.
    pub async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        self.provider.destroy(tenant, delete_pile).await
    }

    /// What there is of a tenant here, also after it was destroyed: its pile may have been kept.
    ///
    /// # Errors
    /// When the worker's folder cannot be read.
    pub async fn look(&self, tenant: &Tenant) -> Result<Found, BackendError> {
        self.provider.backend().look(tenant).await
    }

    /// Every tenant that has a sandbox, sorted.
    ///
    /// # Errors
    /// When the worker's folder cannot be read.
    pub async fn list(&self) -> Result<Vec<TenantStatus>, BackendError> {
        Ok(self.provider.backend().tenants().await?.iter().map(|tenant| self.status(tenant)).collect())
    }

    /// One tenant, as the list shows it.
    #[must_use]
    pub fn status(&self, tenant: &Tenant) -> TenantStatus {
        let (handles, active_jobs) = self.provider.usage(tenant);
        TenantStatus { tenant: tenant.clone(), live: self.provider.backend().is_live(tenant), handles, active_jobs }
    }

    /// What the backend can prove on this host.
    #[must_use]
    pub fn assurances(&self) -> &Assurances {
        self.provider.backend().assurances()
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
        let tools = self.tools(Audience::Edge)?;
        tokio::select! {
            served = kit::http::serve(listener, secret, tools, kit::http::Limits::default(), stop) => Ok(served?),
            lost = self.provider.lost() => Err(ServeError::ControlLost(lost)),
        }
    }

    /// Serves the tools to the person at the other end of standard input and output, until the input ends or `stop`
    /// resolves. `open_session` may name any tenant of this machine and has to without `tenant`, which the caller has
    /// made.
    ///
    /// Where standard input is not a pipe, a read of it cannot be interrupted: after `stop` the caller must not wait for
    /// the runtime's blocking threads.
    ///
    /// # Errors
    /// When control over a tenant's processes is lost.
    pub async fn serve_stdio(&self, tenant: Option<&Tenant>, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let tools = self.tools(self.local(tenant).await?)?;
        tokio::select! {
            () = kit::stdio::serve(tools, stop) => Ok(()),
            lost = self.provider.lost() => Err(ServeError::ControlLost(lost)),
        }
    }

    /// Serves as [`Sandbox::serve_stdio`] does, on any pair of streams.
    ///
    /// # Errors
    /// When control over a tenant's processes is lost.
    pub async fn serve_streams(
        &self,
        tenant: Option<&Tenant>,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let tools = self.tools(self.local(tenant).await?)?;
        tokio::select! {
            () = kit::stdio::serve_on(tools, input, output, stop) => Ok(()),
            lost = self.provider.lost() => Err(ServeError::ControlLost(lost)),
        }
    }

    /// Starts again what ran before and looks who is disabled, so that a service begins as its predecessor ended; how many
    /// sandboxes run by it.
    ///
    /// # Errors
    /// When it cannot be found out what there is.
    pub async fn reattach(&self) -> Result<usize, BackendError> {
        self.bind()?;
        self.provider.look_who_is_barred().await?;
        self.provider.backend().reattach().await
    }

    /// Whether work on tenants can be broken off; where it cannot, it is soon done.
    #[must_use]
    pub fn can_be_broken_off(&self) -> bool {
        self.provider.backend().halt().is_some()
    }

    /// Breaks off the work that is done in this process, as if it had failed, so that it takes back what it had begun.
    pub fn break_off(&self) {
        if let Some(halt) = self.provider.backend().halt() {
            halt.wish();
        }
    }

    /// The same for all work from now on, also for what takes something back.
    pub fn give_up(&self) {
        if let Some(halt) = self.provider.backend().halt() {
            halt.insist();
        }
    }

    /// Takes back [`Sandbox::break_off`] where it came too late.
    pub fn go_on(&self) {
        if let Some(halt) = self.provider.backend().halt() {
            halt.forget();
        }
    }

    /// Ends every job of this process, and leaves sandboxes running that outlive it: for who only had a question.
    ///
    /// # Errors
    /// When a death cannot be proven.
    pub async fn leave(&self) -> Result<(), BackendError> {
        self.provider.leave().await
    }

    /// Ends every job and every tenant's processes, with proof. Nothing is started afterwards.
    ///
    /// # Errors
    /// When a death cannot be proven.
    pub async fn shutdown(&self) -> Result<(), BackendError> {
        self.provider.shutdown().await
    }

    /// Makes the worker's folder this backend's. Who only looks binds it to nothing.
    fn bind(&self) -> Result<(), BackendError> {
        mark::leave(&self.config.backend.state, &self.config.backend.kind)
    }

    async fn local(&self, tenant: Option<&Tenant>) -> Result<Audience, std::io::Error> {
        let known = self.provider.backend().tenants().await.map_err(std::io::Error::other)?;
        Ok(Audience::Local { default: tenant.cloned(), known })
    }

    fn tools(&self, audience: Audience) -> Result<Arc<Tools>, std::io::Error> {
        Tools::new(self.provider.clone(), audience, self.jobs.clone()).map_err(std::io::Error::other)
    }
}

/// Whether a tenant has a sandbox in a worker's folder, for a caller that does not open the sandboxes. Of those that lie
/// elsewhere, nothing is known against it.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_known(state: &std::path::Path, tenant: &Tenant) -> bool {
    mark::is_elsewhere(state) || backend::linux::is_known(state, tenant)
}

/// The same where they all lie elsewhere.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_known(_state: &std::path::Path, _tenant: &Tenant) -> bool {
    true
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

/// Keeps whatever descriptors this process was started with, beyond the standard three, out of every program that it
/// starts itself. To be called before the process opens any.
///
/// # Errors
/// When the kernel cannot: Linux before 5.11.
#[cfg(target_os = "linux")]
pub fn keep_descriptors() -> std::io::Result<()> {
    sys::kernel::close_on_exec_from(3)
}

/// What other hosts lack is said by their backends.
///
/// # Errors
/// Always: there is no such call.
#[cfg(not(target_os = "linux"))]
pub fn keep_descriptors() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The backend that was chosen.
async fn choose(config: backend::Config) -> Result<Arc<dyn Backend>, OpenError> {
    let opened = match config.kind.clone() {
        Kind::Linux => linux(config).await,
        Kind::Jail(settings) => backend::jail::open(config, *settings).await,
        Kind::Lima(settings) => backend::lima::open(config, *settings).await,
    };
    match opened {
        Ok(backend) => Ok(backend),
        Err(BackendError::NoIsolation(fault)) => Err(OpenError::NoIsolation(fault)),
        Err(fault) => Err(OpenError::Backend(fault)),
    }
}

#[cfg(target_os = "linux")]
async fn linux(config: backend::Config) -> Result<Arc<dyn Backend>, BackendError> {
    let opened = tokio::task::spawn_blocking(move || backend::linux::LinuxBackend::open(config)).await;
    let opened = opened.map_err(|fault| BackendError::Step {
        step: "open the backend".to_owned(),
        source: std::io::Error::other(fault),
    })?;
    Ok(Arc::new(opened?))
}

#[cfg(not(target_os = "linux"))]
async fn linux(config: backend::Config) -> Result<Arc<dyn Backend>, BackendError> {
    Err(BackendError::NoIsolation(NoIsolation {
        what: "the linux backend".to_owned(),
        why: format!("this host has no namespaces for {}", config.state.display()),
        remedy: "name another one with --backend, or serve native workers alone".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    use kit::Tenant;
    use tokio::sync::Semaphore;

    use super::{Config, JobLimits, Sandbox, ServeError};
    use crate::backend::fake::Fake;
    use crate::backend::{CommandSpec, ControlLost, Shell};
    use crate::jobs::driver::Submission;
    use crate::jobs::table::Kept;
    use crate::provider::{Provider, Scope};
    use crate::settings::{Clocks, Settings};

    #[tokio::test]
    async fn serving_ends_when_control_is_lost() {
        let (fake, tenant) = (Fake::new(), Tenant::parse("a").unwrap());
        let provider = Provider::new(Arc::clone(&fake) as _, JobLimits::default(), Clocks::default());
        let config = Arc::new(Config::new(PathBuf::new(), PathBuf::new(), Vec::new(), Settings::default()));
        let jobs = JobLimits::default();
        let sandbox = Sandbox { provider: provider.clone(), jobs, config, trying: Arc::new(Semaphore::new(1)) };
        fake.expect_open(&tenant);
        let session = provider.open(&tenant).await.unwrap().session;
        let script = fake.expect_start(&tenant, "it");
        let lost = ControlLost { tenant: tenant.clone(), reason: "as the test wants it".to_owned() };
        script.proof.send_replace(Some(Err(lost)));
        let command =
            CommandSpec { command: "it".to_owned(), shell: Shell::Login, cwd: None, stdin: false, limit: None };
        let submission = Submission { command, stdin: None, timeout: Duration::from_secs(60), kept: Kept::Retained };
        let scope = Scope::Tenant(tenant.clone());
        let (_input, server_input) = tokio::io::duplex(64);
        let serving = sandbox.serve_streams(Some(&tenant), server_input, tokio::io::sink(), std::future::pending());
        let losing = async {
            let job = provider.start(&scope, &session, submission).await.unwrap().release();
            provider.cancel(&scope, &job.to_string()).unwrap();
        };
        let (served, ()) = tokio::join!(serving, losing);
        assert!(matches!(served, Err(ServeError::ControlLost(lost)) if lost.reason == "as the test wants it"));
    }
}
