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

mod backend;
mod builder;
mod disk;
mod kept;
mod limactl;
mod machine;
mod made;
mod mark;
mod name;
mod plan;
mod progress;
mod provision;
mod record;
pub mod rehearsal;
mod settings;
mod template;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::oneshot;

pub(crate) use self::builder::Builder;
use self::disk::{Disk, Real};
use self::kept::Kept;
use self::limactl::Limactl;
use self::machine::Machine;
use self::made::Made;
use self::name::Name;
use self::record::{Records, STRANGER};
pub use self::settings::Settings;
use super::host::files::CleanShell;
use super::host::{Argv, Local, Runner, Script};
use super::{
    AppendOnly, Assurances, Backend, BackendError, CommandSpec, Config, DiskQuota, FileError, Leftovers, NoIsolation,
    Proof, Record, UidMap,
};
use crate::settings::TenantSettings;

/// The backend; clones are one.
#[derive(Clone)]
struct Lima(Arc<Inner>);

struct Inner {
    settings: Settings,
    common: TenantSettings,
    bootstrap_pile: Option<PathBuf>,
    records: Arc<Records>,
    limactl: Arc<Limactl>,
    /// The operating system of this host.
    host: &'static str,
    assurances: Assurances,
    machines: Mutex<BTreeMap<Tenant, Arc<Machine>>>,
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
        let records = Arc::new(Records::open(&config.state, &settings, disk)?);
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
        let (machines, tasks) = (Mutex::default(), Tasks::new());
        let inner = Inner { settings, common, bootstrap_pile, records, limactl, host, assurances, machines, tasks };
        let listed = inner.limactl.all().await.map_err(|fault| {
            BackendError::NoIsolation(NoIsolation {
                what: "the lima backend".to_owned(),
                why: kit::chain(&fault),
                remedy: "install Lima, so that `limactl list` works for this user, or name another --backend"
                    .to_owned(),
            })
        })?;
        for fault in inner.records.torn()? {
            tracing::warn!(fault = kit::chain(&fault), "a tenant is left out, whose machine is not known any more");
        }
        for kept in inner.records.all()? {
            let name = inner.name(&kept.tenant);
            let Some(listed) = listed.get(name.as_str()) else { continue };
            match inner.records.recognise(&kept.tenant, listed) {
                Ok(()) => inner.machine(&kept.tenant).tell(listed.state == RUNNING),
                Err(fault) => {
                    tracing::warn!(tenant = %kept.tenant, fault = kit::chain(&fault), "a machine is somebody else's");
                }
            }
        }
        Ok(Self(Arc::new(inner)))
    }
}

impl Inner {
    fn name(&self, tenant: &Tenant) -> Name {
        Name::of(&self.settings.instance_prefix, tenant)
    }

    fn machine(&self, tenant: &Tenant) -> Arc<Machine> {
        let parts = || (Arc::clone(&self.limactl), Arc::clone(&self.records));
        let new = || Arc::new(Machine::new(tenant.clone(), self.name(tenant), parts()));
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
        self.begin(work).await.map_err(|_dropped| BackendError::ShuttingDown)?
    }

    fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, BackendError>> {
        let (done, finished) = oneshot::channel();
        self.tasks.start(async move {
            let _ = done.send(work.await);
        });
        finished
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
            if self.limactl.is_leaving() {
                return;
            }
            match self.open(&tenant).await {
                Ok(_) if self.limactl.is_only_shown() => {}
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

fn is_stranger(fault: &BackendError) -> bool {
    matches!(fault, BackendError::Step { source, .. } if source.to_string() == STRANGER)
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
