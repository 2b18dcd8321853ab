//! Isolation by namespaces of this host's kernel: no daemon, no image, no other program.
//!
//! ```text
//! service ──socket──> first process of a tenant (this program again, process 1 of its own namespaces)
//!    │                    ├─ sh of a command ─ its tree        one cgroup a command, or one pid namespace
//!    │                    └─ opens and replaces files as the tenant's user
//!    └─ cgroups, user maps, folders, the pile's flag
//! ```
//!
//! It promises that a tenant has no capability, no user, no path and no network of the host, and that what it says is
//! dead is dead: a command when its cgroup is empty or its namespace is reaped, a tenant when its first process is. It
//! cannot promise anything about a fault of the kernel itself, which all tenants share.

mod cgroup;
mod command;
mod files;
mod init;
mod launch;
mod layout;
mod live;
mod pile;
mod probe;
mod provision;
mod removal;
mod wire;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Tenant, tasks::Tasks};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, SemaphorePermit};

use self::cgroup::Cgroups;
use self::command::LinuxCommand;
use self::launch::{Program, Users, launch};
use self::layout::{Hold, Layout, Meta, Pile, step};
use self::live::{Answer, Live};
use self::wire::{Bounds, HOME, LONGEST_INLINE, Order, PILE_FOLDER, Setup, Start, Step, USER, WORKSPACE};
use super::{
    Assurances, Backend, BackendError, CommandSpec, Config, FileError, Guest, GuestPath, Pending, Provision,
    Provisioned, Shell, Started, UidMap, Written,
};

pub use self::init::init_main;

/// The backend; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct LinuxBackend(Arc<Inner>);

struct Inner {
    config: Config,
    layout: Layout,
    cgroups: Cgroups,
    program: Program,
    ids: UidMap,
    assurances: Assurances,
    slots: Mutex<HashMap<Tenant, Arc<Slot>>>,
    tasks: Tasks,
    closing: AtomicBool,
    #[cfg(feature = "test-door")]
    unconfined: bool,
}

/// A tenant's place, running or not.
struct Slot {
    /// One at a time opens, stops, makes or destroys; held across waits, which no mutex may be.
    gate: Semaphore,
    live: Mutex<Option<Arc<Live>>>,
}

impl Slot {
    async fn alone(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.gate.acquire().await.ok()
    }

    fn live(&self) -> Option<Arc<Live>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_ref().filter(|live| !live.is_dead()).map(Arc::clone)
    }

    fn set(&self, live: Option<Arc<Live>>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }
}

impl LinuxBackend {
    /// Finds out what this host can do, by doing it, and clears up what a killed predecessor left. Blocks.
    ///
    /// # Errors
    /// When the host cannot isolate, with the setting that stands in the way, or the state folder cannot be used.
    pub fn open(config: Config) -> Result<Self, BackendError> {
        Inner::open(config).map(|inner| Self(Arc::new(inner)))
    }

    /// A backend whose tenants keep every capability of their namespaces and have no filter: what an attacker would be
    /// who had broken those two locks. Tests show that the others hold alone.
    ///
    /// # Errors
    /// As [`LinuxBackend::open`].
    #[cfg(feature = "test-door")]
    pub fn open_for_test_as_guest_root(config: Config) -> Result<Self, BackendError> {
        let mut inner = Inner::open(config)?;
        inner.unconfined = true;
        Ok(Self(Arc::new(inner)))
    }
}

impl Inner {
    fn open(config: Config) -> Result<Self, BackendError> {
        let layout = Layout::open(&config.state)?;
        let program = Program::open(&config.program, &config.init_arguments)?;
        let ids = probe::user_ids()?;
        let cgroups = Cgroups::discover(&probe::service_name(&config.state)?);
        let assurances = probe::assurances(&config, ids, &cgroups);
        let inner = Self {
            config,
            layout,
            cgroups,
            program,
            ids,
            assurances,
            slots: Mutex::default(),
            tasks: Tasks::new(),
            closing: AtomicBool::new(false),
            #[cfg(feature = "test-door")]
            unconfined: false,
        };
        probe::isolation(&inner)?;
        inner.sweep();
        Ok(inner)
    }

    /// Ends what a killed predecessor may have left of tenants that nobody holds now.
    fn sweep(&self) {
        for tenant in self.layout.tenants().unwrap_or_default() {
            let swept = self.layout.tenant(&tenant).and_then(|home| {
                let lock = home.hold()?;
                let swept = self.cgroups.sweep(&tenant, self.config.limits.kill_deadline);
                drop(lock);
                swept.map_err(step(format!("clear the cgroups of {tenant}")))
            });
            match swept {
                Ok(()) | Err(BackendError::Held { .. }) => {}
                Err(fault) => tracing::warn!(%tenant, %fault, "leftovers of a former run cannot be cleared"),
            }
        }
    }

    fn slot(&self, tenant: &Tenant) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Slot { gate: Semaphore::new(1), live: Mutex::new(None) }));
        Arc::clone(slot)
    }

    /// The tenant's running sandbox, started if it is not running.
    async fn live(self: &Arc<Self>, tenant: &Tenant) -> Result<Arc<Live>, BackendError> {
        let slot = self.known(tenant)?;
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        let _alone = slot.alone().await;
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        self.launch(tenant, &slot).await
    }

    /// The slot of a tenant that has a sandbox; no request for a name that has none leaves anything behind.
    fn known(&self, tenant: &Tenant) -> Result<Arc<Slot>, BackendError> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(tenant) {
            return Ok(Arc::clone(slot));
        }
        drop(slots);
        self.layout.tenant(tenant)?.meta()?;
        Ok(self.slot(tenant))
    }

    /// Starts a tenant's sandbox. The caller holds the slot's gate. Not given up half-way when the future is dropped:
    /// the blocking part finishes, and what it made ends by the end of its socket.
    async fn launch(self: &Arc<Self>, tenant: &Tenant, slot: &Slot) -> Result<Arc<Live>, BackendError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(BackendError::ShuttingDown);
        }
        let (this, name) = (Arc::clone(self), tenant.clone());
        let started = tokio::task::spawn_blocking(move || this.start_first_process(&name)).await;
        let (launched, cgroup, lock) = started.map_err(|fault| step("start a sandbox")(io::Error::other(fault)))??;
        let deadline = self.config.limits.kill_deadline;
        let live =
            Live::adopt(tenant.clone(), launched, cgroup, Some(lock), deadline).map_err(step("start a sandbox"))?;
        self.tasks.start(Arc::clone(&live).run());
        slot.set(Some(Arc::clone(&live)));
        // A shutdown that began meanwhile did not see this tenant.
        if self.closing.load(Ordering::Acquire) {
            live.end().await?;
            return Err(BackendError::ShuttingDown);
        }
        Ok(live)
    }

    fn start_first_process(
        &self,
        tenant: &Tenant,
    ) -> Result<(launch::Launched, Option<cgroup::TenantCgroup>, Hold), BackendError> {
        let home = self.layout.tenant(tenant)?;
        let meta = home.meta()?;
        let lock = home.hold()?;
        let users = users(self.ids, &meta)?;
        let owner = match users {
            Users::Range(first) => Some(first),
            Users::Single => None,
        };
        let cgroup = self
            .cgroups
            .make(tenant, &self.config.limits, owner)
            .map_err(step(format!("make the cgroups of {tenant}")))?;
        let (files, workspace, pile) = (home.home(), home.workspace(), home.pile());
        let mut folders: Vec<(&'static str, &Path)> = vec![(HOME, &files), (WORKSPACE, &workspace)];
        if meta.pile != Pile::None {
            folders.push((PILE_FOLDER, &pile));
        }
        let setup = self.setup(tenant.as_str(), meta.pile != Pile::None);
        match launch(&self.program, users, Some(&cgroup), setup, &folders) {
            Ok(launched) => Ok((launched, Some(cgroup), lock)),
            Err(fault) => {
                let _ = cgroup.remove(self.config.limits.kill_deadline);
                Err(fault)
            }
        }
    }

    fn setup(&self, host_name: &str, pile: bool) -> Setup {
        let limits = &self.config.limits;
        Setup {
            host_name: host_name.to_owned(),
            binds: Vec::new(),
            limits: Bounds {
                processes: limits.processes,
                open_files: limits.open_files,
                file_size: limits.file_size,
                memory_each: self.cgroups.memory_by().is_none().then_some(limits.memory),
                temporary: limits.memory / 2,
            },
            pile,
            nested: !self.cgroups.can_kill(),
            #[cfg(feature = "test-door")]
            unconfined: self.unconfined,
        }
    }

    async fn start(self: &Arc<Self>, tenant: &Tenant, spec: CommandSpec) -> Result<Started, BackendError> {
        let live = self.live(tenant).await?;
        begin(live, spec).await
    }
}

impl Drop for Inner {
    /// What was not shut down ends all the same, only without the proof.
    fn drop(&mut self) {
        self.tasks.abort();
        let slots = std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner));
        for live in slots.values().filter_map(|slot| slot.live()) {
            live.abandon();
        }
        self.cgroups.leave();
    }
}

/// Starts a command in a running sandbox.
async fn begin(live: Arc<Live>, spec: CommandSpec) -> Result<Started, BackendError> {
    let starting = || step("start a command");
    if spec.command.contains('\0') {
        return Err(starting()(io::Error::new(io::ErrorKind::InvalidInput, "a command cannot hold a zero byte")));
    }
    let id = live.number();
    let streams = Streams::make(spec.stdin).map_err(starting())?;
    let text = if spec.command.len() > LONGEST_INLINE {
        Some(files::memory_file(spec.command.as_bytes()).map_err(starting())?)
    } else {
        None
    };
    // Control groups are files in memory: making one blocks for microseconds at most.
    let group = live.cgroup.as_ref().map(|cgroup| cgroup.command(id)).transpose().map_err(starting())?.flatten();
    let (group, folder) = group.unzip();
    let job = live.register(id, group)?;
    let order = Order::Start(Start {
        id,
        command: text.is_none().then_some(spec.command),
        login: spec.shell == Shell::Login,
        cwd: spec.cwd.clone(),
        stdin: spec.stdin,
        cgroup: folder.is_some(),
    });
    let theirs =
        [streams.theirs.0.as_ref(), Some(&streams.theirs.1), Some(&streams.theirs.2), text.as_ref(), folder.as_ref()];
    let descriptors: Vec<_> = theirs.into_iter().flatten().map(AsFd::as_fd).collect();
    // A caller that stops waiting here leaves a command that nobody knows; it is reaped with its sandbox's others.
    let answer = live.ask(id, &order, &descriptors).await;
    match answer {
        Ok(Answer::Started) => {}
        Ok(Answer::NotStarted(Step::Directory, _)) => {
            live.forget(id);
            return Err(BackendError::NoDirectory(spec.cwd.unwrap_or_else(|| HOME.to_owned())));
        }
        Ok(Answer::NotStarted(at, fault)) => {
            live.forget(id);
            let what = match at {
                Step::Fork => "start a process for a command",
                Step::Become | Step::Directory => "become the tenant's user",
                Step::Execute => "hand a command to the shell",
            };
            return Err(step(what)(fault));
        }
        Ok(Answer::Opened(_) | Answer::Written { .. } | Answer::FileFault(_)) => {
            live.forget(id);
            return Err(starting()(io::ErrorKind::InvalidData.into()));
        }
        Err(fault) => {
            live.forget(id);
            return Err(fault);
        }
    }
    streams.started(LinuxCommand { live, job }).map_err(starting())
}

/// The pipes of one command, both ends.
struct Streams {
    theirs: (Option<OwnedFd>, OwnedFd, OwnedFd),
    ours: (Option<OwnedFd>, OwnedFd, OwnedFd),
}

impl Streams {
    fn make(stdin: bool) -> io::Result<Self> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let (stdin, to_stdin) =
            if stdin { pipe().map(|(read, write)| (Some(read), Some(write)))? } else { (None, None) };
        let (from_stdout, stdout) = pipe()?;
        let (from_stderr, stderr) = pipe()?;
        Ok(Self { theirs: (stdin, stdout, stderr), ours: (to_stdin, from_stdout, from_stderr) })
    }

    fn started(self, command: LinuxCommand) -> io::Result<Started> {
        let stdin = match self.ours.0 {
            Some(stdin) => Some(Box::new(pipe::Sender::from_owned_fd(stdin)?) as Box<_>),
            None => None,
        };
        Ok(Started {
            stdin,
            stdout: Box::new(pipe::Receiver::from_owned_fd(self.ours.1)?),
            stderr: Box::new(pipe::Receiver::from_owned_fd(self.ours.2)?),
            command: Box::new(command),
        })
    }
}

fn users(ids: UidMap, meta: &Meta) -> Result<Users, BackendError> {
    match (ids, meta.first_uid) {
        (UidMap::Range, Some(first)) => Ok(Users::Range(first)),
        (UidMap::Single, None) => Ok(Users::Single),
        (UidMap::Range, None) => Err(step("use a sandbox")(io::Error::other(
            "it was made by an ordinary user's service; run the service as that user",
        ))),
        (UidMap::Single, Some(_)) => {
            Err(step("use a sandbox")(io::Error::other("it was made by root's service; run the service as root")))
        }
    }
}

impl Backend for LinuxBackend {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn assurances(&self) -> &Assurances {
        &self.0.assurances
    }

    fn provision<'a>(
        &'a self,
        tenant: &'a Tenant,
        spec: &'a Provision,
    ) -> Pending<'a, Result<Provisioned, BackendError>> {
        Box::pin(self.0.provision(tenant, spec))
    }

    fn destroy<'a>(&'a self, tenant: &'a Tenant, delete_pile: bool) -> Pending<'a, Result<(), BackendError>> {
        Box::pin(self.0.destroy(tenant, delete_pile))
    }

    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>> {
        Box::pin(async move {
            let layout = self.0.layout.clone();
            let listed = tokio::task::spawn_blocking(move || layout.tenants()).await;
            listed.map_err(|fault| step("list the tenants")(io::Error::other(fault)))?
        })
    }

    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>> {
        Box::pin(async move {
            self.0.live(tenant).await?;
            let pile = self.0.layout.tenant(tenant)?.meta()?.pile_state();
            Ok(Guest { os: "linux", arch: std::env::consts::ARCH, user: USER.to_owned(), home: HOME.to_owned(), pile })
        })
    }

    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let slot = self.0.known(tenant)?;
            let _alone = slot.alone().await;
            if let Some(live) = slot.live() {
                live.end().await?;
            }
            slot.set(None);
            Ok(())
        })
    }

    fn is_live(&self, tenant: &Tenant) -> bool {
        let slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.get(tenant).is_some_and(|slot| slot.live().is_some())
    }

    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>> {
        Box::pin(self.0.start(tenant, command))
    }

    fn read_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        most: u64,
    ) -> Pending<'a, Result<Vec<u8>, FileError>> {
        Box::pin(async move { files::read(&*self.0.live(tenant).await?, path, most).await })
    }

    fn write_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(async move { files::write(&*self.0.live(tenant).await?, path, content).await })
    }

    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.0.closing.store(true, Ordering::Release);
            let slots: Vec<Arc<Slot>> =
                self.0.slots.lock().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect();
            let lives: Vec<Arc<Live>> = slots.iter().filter_map(|slot| slot.live()).collect();
            // All are told before the first is waited for, so that the time is one tenant's and not the sum.
            let mut lost = Ok(());
            for live in &lives {
                live.let_go();
            }
            for live in &lives {
                if let Err(fault) = live.end().await {
                    lost = Err(fault.into());
                }
            }
            self.0.cgroups.leave();
            lost
        })
    }
}
