//! Isolation by virtual machines of this host, one a tenant, through `limactl`.
//!
//! ```text
//! record (ours, durable) ──> plan ──limactl──> machine ──limactl shell──> a tenant's command
//! ```
//!
//! It promises that a machine of ours is known by its record and not by its name: what carries the prefix without a record
//! is somebody else's, be it the original's, whose names several tenants can share, and is neither entered, started nor
//! stopped. It cannot prove that a command is dead, since the end of `limactl` proves nothing of the guest; so what is
//! cancelled ends with its whole machine, which is started again, and nothing runs in the background. It cannot prove
//! either that a pile is only appended to: root of the guest can do everything to what is mounted there.

mod builder;
mod disk;
mod limactl;
mod machine;
mod made;
mod name;
mod plan;
mod progress;
mod record;
pub mod rehearsal;
mod settings;
mod template;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::Tenant;
use kit::tasks::Tasks;

pub(crate) use self::builder::Builder;
use self::disk::{Disk, Real};
use self::limactl::Limactl;
use self::machine::Machine;
use self::made::Made;
use self::name::Name;
use self::record::{Kept, Records};
pub use self::settings::Settings;
use super::host::files::CleanShell;
use super::host::{Argv, Local, Runner, Script, direct, started};
use super::{
    AppendOnly, Assurances, Backend, BackendError, Change, CommandSpec, Config, Direct, DiskQuota, FileError, Found,
    Guest, GuestPath, Leftovers, NoIsolation, Pending, Pile, Proof, Provision, Provisioned, Record, Share, Started,
    Streams, UidMap, Usage, Written, keeps,
};
use crate::settings::TenantSettings;

/// The backend; clones are one.
#[derive(Clone)]
struct Lima(Arc<Inner>);

struct Inner {
    settings: Settings,
    common: TenantSettings,
    bootstrap_pile: Option<PathBuf>,
    records: Records,
    limactl: Arc<Limactl>,
    /// The operating system of this host.
    host: &'static str,
    assurances: Assurances,
    machines: Mutex<BTreeMap<Tenant, Arc<Machine>>>,
    /// Whether no machine is to be started any more that nobody asks for.
    leaving: AtomicBool,
    /// What has to be finished even if nobody waits for it any more.
    tasks: Tasks,
}

/// What the backend works with, which is this host or one that is only pretended.
struct Surface {
    runner: Arc<dyn Runner>,
    disk: Arc<dyn Disk>,
    host: &'static str,
    script: Option<Script>,
}

/// Opens the backend.
///
/// # Errors
/// When the folders cannot be used, or `limactl` is not here.
pub async fn open(config: Config, settings: Settings) -> Result<Arc<dyn Backend>, BackendError> {
    let runner = Arc::new(Local::new(settings.surroundings.clone()));
    let surface = Surface { runner, disk: Arc::new(Real), host: std::env::consts::OS, script: None };
    let backend = Lima::open(config, settings, surface).await?;
    Ok(Arc::new(backend))
}

impl Lima {
    async fn open(config: Config, settings: Settings, surface: Surface) -> Result<Self, BackendError> {
        settings.check()?;
        let Surface { runner, disk, host, script } = surface;
        let records = Records::open(&config.state, &settings, disk)?;
        let limactl = Arc::new(Limactl::new(runner, settings.admin_limit(), script));
        let assurances = Assurances {
            uid_map: UidMap::Machine,
            proof: Proof::None,
            append_only: AppendOnly::None,
            disk_quota: DiskQuota::Hard,
            leftovers: Leftovers::Visible,
            limits: vec![("memory", "the machine's own"), ("cpu", "the machine's own"), ("disk", "the machine's own")],
        };
        let Config { common, bootstrap_pile, .. } = config;
        let (machines, leaving, tasks) = (Mutex::default(), AtomicBool::new(false), Tasks::new());
        let inner =
            Inner { settings, common, bootstrap_pile, records, limactl, host, assurances, machines, leaving, tasks };
        let listed = inner.limactl.states().await.map_err(|fault| {
            BackendError::NoIsolation(NoIsolation {
                what: "the lima backend".to_owned(),
                why: kit::chain(&fault),
                remedy: "install Lima, so that `limactl list` works for this user, or name another --backend"
                    .to_owned(),
            })
        })?;
        for kept in inner.records.all()? {
            let name = inner.name(&kept.tenant);
            inner.machine(&kept.tenant).tell(listed.get(name.as_str()).is_some_and(|state| state == RUNNING));
        }
        Ok(Self(Arc::new(inner)))
    }
}

impl Inner {
    fn name(&self, tenant: &Tenant) -> Name {
        Name::of(&self.settings.instance_prefix, tenant)
    }

    fn machine(&self, tenant: &Tenant) -> Arc<Machine> {
        let new = || Arc::new(Machine::new(tenant.clone(), self.name(tenant), Arc::clone(&self.limactl)));
        Arc::clone(self.machines().entry(tenant.clone()).or_insert_with(new))
    }

    /// Those that there is a record of: no other is to be touched, whatever it is called.
    fn ours(&self) -> Result<Vec<Arc<Machine>>, BackendError> {
        Ok(self.records.all()?.iter().map(|kept| self.machine(&kept.tenant)).collect())
    }

    fn machines(&self) -> MutexGuard<'_, BTreeMap<Tenant, Arc<Machine>>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finishes work whoever goes away meanwhile: half a machine is nobody's.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (done, finished) = tokio::sync::oneshot::channel();
        self.tasks.start(async move {
            let _ = done.send(work.await);
        });
        finished.await.map_err(|_dropped| BackendError::ShuttingDown)?
    }

    async fn provision(&self, tenant: &Tenant, spec: &Provision) -> Result<Provisioned, BackendError> {
        keeps::machines(&spec.settings)?;
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        let known = self.records.find(tenant)?;
        let exists = self.limactl.states().await?.contains_key(machine.name().as_str());
        if exists && known.is_none() {
            return Err(step(
                format!("make the machine {}", machine.name().as_str()),
                io::Error::other(
                    "there is one of this name that this service has not made; remove it with limactl delete",
                ),
            ));
        }
        let created = known.is_none() || !exists;
        let mut kept = match known {
            Some(kept) => kept,
            None => Kept::new(tenant, spec, self.pile(tenant, spec)?),
        };
        kept.pile = self.records.settle_pile(&kept, self.bootstrap_pile.as_deref())?;
        if exists {
            kept.has_faculties()?;
            machine.start().await?;
        } else {
            if let Some(template) = &self.settings.template {
                self.records.regular(template)?;
            }
            kept.bundle = self.bundle(&kept).cloned();
            let made = Made::of(&kept.settings, &self.common, kept.bundle.as_ref());
            let text = template::render(&template::Facts {
                settings: &self.settings,
                made: &made,
                pile: kept.pile.as_ref(),
                tenant,
                host: self.host,
            })
            .map_err(|fault| step("write the machine's template", fault))?;
            let file = self.records.template(&machine.name(), &text)?;
            kept.made = Some(made);
            // Before the machine, so that one which is half made is known for ours by the next attempt.
            self.records.keep(&kept)?;
            if let Err(fault) = machine.make(&file).await {
                if self.limactl.states().await.is_ok_and(|states| !states.contains_key(machine.name().as_str())) {
                    self.records.forget(tenant)?;
                }
                return Err(fault);
            }
        }
        self.records.keep(&kept)?;
        Ok(Provisioned { created, pile: kept.pile_state() })
    }

    /// The faculties that were built for machines, unless somebody says otherwise.
    fn bundle(&self, kept: &Kept) -> Option<&PathBuf> {
        let own = kept.settings.faculties.as_ref().or(self.common.faculties.as_ref());
        self.settings.faculties.as_ref().filter(|_| own.is_none())
    }

    /// The pile that was asked for.
    fn pile(&self, tenant: &Tenant, spec: &Provision) -> Result<Option<record::Pile>, BackendError> {
        match (spec.pile, &self.settings.faculty_pile) {
            (Pile::None, _) | (Pile::IfEnforceable, None) => Ok(None),
            (Pile::Enforced, _) => Err(BackendError::NotEnforceable(
                "root of a machine can do everything to what is mounted there".to_owned(),
            )),
            (Pile::Unenforced | Pile::IfEnforceable, Some(file)) => self.records.pile_beside(file).map(Some),
            (Pile::Unenforced, None) => Ok(Some(self.records.own_pile(&self.name(tenant)))),
        }
    }

    async fn destroy(&self, tenant: &Tenant, delete_pile: bool) -> Result<(), BackendError> {
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        let Some(kept) = self.records.find(tenant)? else {
            if delete_pile && self.records.remove_own_pile(&machine.name())? {
                return Ok(());
            }
            return Err(BackendError::NotProvisioned(tenant.clone()));
        };
        machine.delete().await?;
        self.records.forget(tenant)?;
        if delete_pile && kept.pile.is_some() {
            self.records.remove_own_pile(&machine.name())?;
        }
        self.machines().remove(tenant);
        Ok(())
    }

    fn kept(&self, tenant: &Tenant) -> Result<Kept, BackendError> {
        self.records.find(tenant)?.ok_or_else(|| BackendError::NotProvisioned(tenant.clone()))
    }

    async fn open(&self, tenant: &Tenant) -> Result<Arc<Machine>, BackendError> {
        let kept = self.kept(tenant)?;
        let machine = self.machine(tenant);
        let _alone = machine.alone().await;
        if !machine.is_live() {
            kept.has_faculties()?;
            self.records.settle_pile(&kept, self.bootstrap_pile.as_deref())?;
            machine.start().await?;
        }
        Ok(Arc::clone(&machine))
    }

    /// Tells whose faculties are no longer those of the sources.
    fn compare_bundles(&self) -> Result<(), BackendError> {
        for kept in self.records.all()?.into_iter().filter(|kept| !kept.disabled) {
            if self.settings.faculties.is_some() && kept.bundle.as_ref() != self.bundle(&kept) {
                let (tenant, has) = (&kept.tenant, kept.bundle.as_deref().unwrap_or(Path::new("none")));
                tracing::warn!(%tenant, has = %has.display(), "a machine keeps the faculties that it was made with, and the sources have others; user destroy and user create make it again");
            }
        }
        Ok(())
    }

    /// Whose machines are to run and do not.
    fn resting(&self) -> Result<Vec<Tenant>, BackendError> {
        let enabled = self.records.all()?.into_iter().filter(|kept| !kept.disabled).map(|kept| kept.tenant);
        Ok(enabled.filter(|tenant| !self.machine(tenant).is_live()).collect())
    }

    /// Starts machines, one after the other.
    async fn wake(&self, resting: Vec<Tenant>) {
        for tenant in resting {
            if self.leaving.load(Ordering::Relaxed) {
                return;
            }
            match self.open(&tenant).await {
                Ok(_) => tracing::info!(%tenant, "a machine runs again"),
                Err(fault) => tracing::warn!(%tenant, fault = kit::chain(&fault), "a machine does not start"),
            }
        }
    }

    /// What a machine was made with. An earlier release did not write it down.
    fn made(&self, kept: &Kept) -> Made {
        let now = || Made::of(&kept.settings, &self.common, kept.bundle.as_ref());
        kept.made.clone().unwrap_or_else(now)
    }

    fn record(&self, kept: &Kept) -> Record {
        let made = self.made(kept);
        Record {
            profile: made.profile(),
            in_force: made.in_force(),
            common: made.common,
            settings: kept.settings.clone(),
            disabled: kept.disabled,
            session: Some(self.name(&kept.tenant).as_str().to_owned()),
            pile: kept.pile_state(),
            disk_quota: DiskQuota::Hard,
        }
    }

    async fn files<T>(
        &self,
        tenant: &Tenant,
        work: impl AsyncFnOnce(CleanShell<'_>) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let machine = self.open(tenant).await?;
        let name = machine.name();
        let inside = |words: Vec<String>| plan::inside(&name, words);
        // The script begins in the shell's own home where it is given none.
        let (runner, ending) = (self.limactl.runner(), machine::ending(&machine));
        work(CleanShell { runner, inside: &inside, home: HOME, limit: FILE_LIMIT, ending: &*ending }).await
    }

    async fn command(&self, tenant: &Tenant, command: &CommandSpec) -> Result<(Arc<Machine>, Argv), BackendError> {
        let machine = self.open(tenant).await?;
        let argv = plan::command(&machine.name(), command);
        Ok((machine, argv))
    }
}

impl Backend for Lima {
    fn name(&self) -> &'static str {
        "lima"
    }

    fn assurances(&self) -> &Assurances {
        &self.0.assurances
    }

    fn provision<'a>(
        &'a self,
        tenant: &'a Tenant,
        spec: &'a Provision,
    ) -> Pending<'a, Result<Provisioned, BackendError>> {
        let (this, tenant, spec) = (Arc::clone(&self.0), tenant.clone(), spec.clone());
        Box::pin(self.0.to_the_end(async move { this.provision(&tenant, &spec).await }))
    }

    fn destroy<'a>(&'a self, tenant: &'a Tenant, delete_pile: bool) -> Pending<'a, Result<(), BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(self.0.to_the_end(async move { this.destroy(&tenant, delete_pile).await }))
    }

    fn look<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Found, BackendError>> {
        Box::pin(async move {
            let kept = self.0.records.find(tenant)?;
            let pile = match kept.as_ref().and_then(|kept| kept.pile.as_ref()) {
                Some(pile) => Some(pile.folder()),
                None => self.0.records.kept_pile(&self.0.name(tenant)),
            };
            Ok(Found { sandbox: kept.is_some(), pile })
        })
    }

    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>> {
        Box::pin(async { Ok(self.0.records.all()?.into_iter().map(|kept| kept.tenant).collect()) })
    }

    fn record<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Record, BackendError>> {
        Box::pin(async { Ok(self.0.record(&self.0.kept(tenant)?)) })
    }

    fn change<'a>(&'a self, tenant: &'a Tenant, change: Change) -> Pending<'a, Result<Record, BackendError>> {
        Box::pin(async move {
            let mut kept = self.0.kept(tenant)?;
            match change {
                Change::Settings { settings, .. } => {
                    keeps::machines(&settings)?;
                    if !made::has_all(&kept.settings, &settings) {
                        let why = "a machine keeps the memory, disk, processors and faculties that it was made with; to \
                                   have others it is made again, by user destroy and user create";
                        return Err(step(format!("change {tenant}"), io::Error::other(why)));
                    }
                    kept.settings = settings;
                }
                Change::Disabled(disabled) => kept.disabled = disabled,
            }
            self.0.records.keep(&kept)?;
            Ok(self.0.record(&kept))
        })
    }

    fn usage<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Usage, BackendError>> {
        Box::pin(async {
            let kept = self.0.kept(tenant)?;
            let pile =
                kept.pile.as_ref().and_then(|pile| std::fs::metadata(&pile.file).ok()).map_or(0, |file| file.len());
            // What lies in a machine is not counted from outside.
            let disk = Share { used: None, bound: Some(self.0.made(&kept).disk.bytes()) };
            Ok(Usage { disk, inodes: Share::default(), pile })
        })
    }

    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(self.0.to_the_end(async move {
            let machine = this.open(&tenant).await?;
            Ok(Guest {
                session: machine.name().as_str().to_owned(),
                os: "linux",
                arch: std::env::consts::ARCH,
                user: this.settings.user.clone(),
                home: HOME.to_owned(),
                pile: this.kept(&tenant)?.pile_state(),
                disk_quota: DiskQuota::Hard,
                egress: Some("all that this host reaches".to_owned()),
                loopback: true,
            })
        }))
    }

    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(self.0.to_the_end(async move {
            this.kept(&tenant)?;
            let machine = this.machine(&tenant);
            let _alone = machine.alone().await;
            machine.stop().await
        }))
    }

    fn holder<'a>(&'a self, _: &'a Tenant) -> Pending<'a, Result<Option<String>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    fn is_live(&self, tenant: &Tenant) -> bool {
        self.0.machines().get(tenant).is_some_and(|machine| machine.is_live())
    }

    /// What runs in a machine is not seen, so that a machine that runs may be in use and never counts as idle.
    fn has_processes(&self, tenant: &Tenant) -> bool {
        self.is_live(tenant)
    }

    /// A machine that rests is looked for and started first, each for as long as a program of the host may take.
    fn longest_start(&self) -> Duration {
        self.0.settings.admin_limit() * 2 + super::LONGEST_START
    }

    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>> {
        Box::pin(async move {
            let (machine, argv) = self.0.command(tenant, &command).await?;
            let (process, ends) = machine.run(&argv, command.stdin, &Streams::Pipes)?;
            started(process, ends, machine::ending(&machine))
        })
    }

    fn start_direct<'a>(
        &'a self,
        tenant: &'a Tenant,
        command: CommandSpec,
        streams: Streams,
    ) -> Pending<'a, Result<Direct, BackendError>> {
        Box::pin(async move {
            let (machine, argv) = self.0.command(tenant, &command).await?;
            let (process, ends) = machine.run(&argv, command.stdin, &streams)?;
            Ok(direct(process, ends, machine::ending(&machine)))
        })
    }

    fn read_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        most: u64,
    ) -> Pending<'a, Result<Vec<u8>, FileError>> {
        Box::pin(self.0.files(tenant, async move |shell| shell.read(path, most).await))
    }

    fn write_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(self.0.files(tenant, async move |shell| shell.write(path, &content).await))
    }

    fn append_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(self.0.files(tenant, async move |shell| shell.append(path, &content).await))
    }

    fn make_parents<'a>(&'a self, tenant: &'a Tenant, path: &'a GuestPath) -> Pending<'a, Result<(), FileError>> {
        Box::pin(self.0.files(tenant, async move |shell| shell.make_parents(path).await))
    }

    /// Machines share none.
    fn remove_shared_pile(&self) -> Pending<'_, Result<bool, BackendError>> {
        Box::pin(async { Ok(false) })
    }

    /// Machines take their time to boot, which nobody else is to wait for. Whoever needs one waits for that one.
    fn reattach(&self) -> Pending<'_, Result<usize, BackendError>> {
        Box::pin(async {
            self.0.compare_bundles()?;
            let resting = self.0.resting()?;
            let (this, count) = (Arc::clone(&self.0), resting.len());
            self.0.tasks.start(async move { this.wake(resting).await });
            Ok(count)
        })
    }

    fn leave(&self) -> Pending<'_, Result<(), BackendError>> {
        Box::pin(async {
            self.0.leaving.store(true, Ordering::Relaxed);
            for machine in self.0.ours()? {
                machine.end_commands().await;
            }
            Ok(())
        })
    }

    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>> {
        let this = Arc::clone(&self.0);
        Box::pin(self.0.to_the_end(async move {
            this.leaving.store(true, Ordering::Relaxed);
            let mut outcome = Ok(());
            for machine in this.ours()? {
                let _alone = machine.alone().await;
                if let Err(fault) = machine.stop().await {
                    outcome = Err(fault);
                }
            }
            outcome
        }))
    }
}

fn step(step: impl Into<String>, source: io::Error) -> BackendError {
    BackendError::Step { step: step.into(), source }
}

/// As `limactl list` calls it.
const RUNNING: &str = "Running";

/// What a shell takes for the home of its user.
const HOME: &str = "~";

/// Some clients give a call up after a minute, so they have to be told before.
const FILE_LIMIT: Duration = Duration::from_secs(40);

#[cfg(test)]
mod tests;
