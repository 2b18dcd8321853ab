//! Isolation by namespaces of this host's kernel: no daemon, no system of its own, and no other program but those that
//! make and enlarge a disk.
//!
//! ```text
//! service ──socket──> first process of a tenant (this program again, process 1 of its own namespaces)
//!    │                    ├─ sh of a command ─ its tree        one cgroup a command, or one pid namespace
//!    │                    └─ opens and replaces files as the tenant's user
//!    └─ cgroups, user maps, disks or folders, the pile's flag
//! ```
//!
//! It promises that a tenant has no capability, no user, no path and no network of the host (what it may reach outside,
//! it reaches through [`egress`]), and that what it says is dead is dead: a command when its cgroup is empty or its
//! namespace is reaped, a tenant when its first process is. It cannot promise anything about a fault of the kernel
//! itself, which all tenants share.

mod cgroup;
mod command;
mod disk;
#[cfg(feature = "test-door")]
mod door;
mod egress;
mod environment;
mod files;
mod first_process;
mod init;
mod kept;
mod launch;
mod layout;
mod live;
mod pile;
mod probe;
mod provision;
mod quota;
mod record;
mod removal;
mod scan;
mod self_test;
mod slot;
mod start;
mod supplies;
mod wire;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kit::{Tenant, tasks::Tasks};

use self::cgroup::Cgroups;
use self::disk::Nodes;
use self::egress::Outside;
use self::environment::environment;
use self::launch::Program;
use self::layout::{Layout, step};
use self::live::Live;
use self::probe::Ids;
use self::slot::Slot;
use self::wire::{Bounds, HOME, Setup, USER};
use super::{
    Assurances, Backend, BackendError, Change, CommandSpec, Config, Direct, FileError, Found, Guest, GuestPath,
    Pending, Provision, Provisioned, Record, Started, Streams, Usage, Written,
};
use crate::settings::{Egress, Profile};

#[cfg(feature = "test-door")]
pub use self::door::{Check, Door};
pub use self::init::init_main;
pub(crate) use self::layout::is_known;
pub(crate) use self::layout::set_aside;

/// The backend; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct LinuxBackend(Arc<Inner>);

struct Inner {
    config: Config,
    layout: Layout,
    cgroups: Cgroups,
    program: Program,
    ids: Ids,
    assurances: Assurances,
    outside: Arc<Outside>,
    slots: Mutex<HashMap<Tenant, Arc<Slot>>>,
    tasks: Tasks,
    closing: AtomicBool,
    /// Of how many tenants something was left.
    swept: usize,
    #[cfg(feature = "test-door")]
    door: Door,
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
        Self::open_for_test(config, Door { unconfined: true, ..Door::default() })
    }

    /// A backend some of whose ways are closed or broken.
    ///
    /// # Errors
    /// As [`LinuxBackend::open`].
    #[cfg(feature = "test-door")]
    pub fn open_for_test(config: Config, door: Door) -> Result<Self, BackendError> {
        let mut inner = Inner::open(config)?;
        inner.door = door;
        inner.assurances = probe::assurances(&inner.config, inner.ids, &inner.cgroups, inner.nodes());
        if inner.door.no_disks {
            inner.assurances.disk_quota = super::DiskQuota::Soft;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// A backend whose tenants' proxies learn from the test, and nobody else, what names lead to.
    ///
    /// # Errors
    /// As [`LinuxBackend::open`].
    #[cfg(all(feature = "egress", feature = "test-door"))]
    pub fn open_for_test_with_names(
        config: Config,
        names: HashMap<String, Vec<std::net::IpAddr>>,
    ) -> Result<Self, BackendError> {
        let mut inner = Inner::open(config)?;
        inner.outside = Arc::new(Outside::told(names));
        Ok(Self(Arc::new(inner)))
    }
}

impl Inner {
    fn open(config: Config) -> Result<Self, BackendError> {
        let layout = Layout::open(&config.state)?;
        let program = Program::open(&config.program, &config.init_arguments)?;
        let ids = probe::user_ids()?;
        let cgroups = Cgroups::discover(&config.state)?;
        layout.ballast().keep();
        let nodes = Nodes { host: Path::new(DEVICES), spare: layout.state() };
        let assurances = probe::assurances(&config, ids, &cgroups, nodes);
        let mut inner = Self {
            config,
            layout,
            cgroups,
            program,
            ids,
            assurances,
            outside: Arc::default(),
            slots: Mutex::default(),
            tasks: Tasks::new(),
            closing: AtomicBool::new(false),
            swept: 0,
            #[cfg(feature = "test-door")]
            door: Door::default(),
        };
        probe::isolation(&inner)?;
        inner.swept = inner.sweep();
        Ok(inner)
    }

    /// Ends what a killed predecessor may have left of tenants that nobody holds now. Their groups are asked and not
    /// their records, since a tenant that was being made or removed at that moment may have none.
    fn sweep(&self) -> usize {
        self.layout.sweep();
        let mut cleared = 0;
        for tenant in self.cgroups.tenants() {
            let swept = self.layout.tenant(&tenant).and_then(|home| {
                // In a folder that is not there nobody can live.
                let lock = home.folder().exists().then(|| home.hold()).transpose()?;
                let swept = self.cgroups.sweep(&tenant, self.config.kill_deadline);
                drop(lock);
                swept.map_err(step(format!("clear the cgroups of {tenant}")))
            });
            match swept {
                Ok(()) => cleared += 1,
                Err(BackendError::Held { .. }) => {}
                Err(fault) => tracing::warn!(%tenant, %fault, "leftovers of a former run cannot be cleared"),
            }
        }
        cleared
    }

    /// Where the nodes of devices are.
    fn nodes(&self) -> Nodes<'_> {
        #[cfg(feature = "test-door")]
        if let Some(host) = &self.door.devices {
            return Nodes { host, spare: self.layout.state() };
        }
        Nodes { host: Path::new(DEVICES), spare: self.layout.state() }
    }

    fn setup(&self, host_name: &str, pile: bool, profile: &Profile) -> Setup {
        let limits = &profile.limits;
        Setup {
            host_name: host_name.to_owned(),
            binds: Vec::new(),
            supplies: supplies::supplies(profile),
            disk: false,
            limits: Bounds {
                processes: limits.processes,
                open_files: limits.open_files,
                file_size: limits.file_size,
                memory_each: self.cgroups.memory_by().is_none().then_some(limits.memory),
                // Both full are half of what the tenant has, so that filling them ends no process.
                temporary: limits.memory / 4,
                yielding: self.cgroups.cpu_by().is_none(),
            },
            environment: environment(host_name, pile, profile),
            egress: profile.egress != Egress::None,
            nested: !self.cgroups.can_kill(),
            #[cfg(feature = "test-door")]
            unconfined: self.door.unconfined,
        }
    }
}

impl Drop for Inner {
    /// What was not shut down ends all the same, only without the proof.
    fn drop(&mut self) {
        self.tasks.abort();
        let slots = std::mem::take(&mut *self.slots.lock().unwrap_or_else(PoisonError::into_inner));
        for live in slots.values().filter_map(|slot| slot.last()) {
            live.abandon();
        }
        self.cgroups.leave();
    }
}

impl Backend for LinuxBackend {
    fn name(&self) -> &'static str {
        "linux"
    }

    fn assurances(&self) -> &Assurances {
        &self.0.assurances
    }

    fn swept(&self) -> usize {
        self.0.swept
    }

    fn provision<'a>(
        &'a self,
        tenant: &'a Tenant,
        spec: &'a Provision,
    ) -> Pending<'a, Result<Provisioned, BackendError>> {
        let (this, tenant, spec) = (Arc::clone(&self.0), tenant.clone(), spec.clone());
        Box::pin(async move {
            let work = Arc::clone(&this);
            this.to_the_end(async move { work.provision(&tenant, &spec).await }).await
        })
    }

    fn destroy<'a>(&'a self, tenant: &'a Tenant, delete_pile: bool) -> Pending<'a, Result<(), BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(async move {
            let work = Arc::clone(&this);
            this.to_the_end(async move { work.destroy(&tenant, delete_pile).await }).await
        })
    }

    fn look<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Found, BackendError>> {
        let (layout, tenant) = (self.0.layout.clone(), tenant.clone());
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || layout.look(&tenant)).await;
            looked.map_err(|fault| step("look for a tenant")(io::Error::other(fault)))?
        })
    }

    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>> {
        Box::pin(async move {
            let layout = self.0.layout.clone();
            let listed = tokio::task::spawn_blocking(move || layout.tenants()).await;
            listed.map_err(|fault| step("list the tenants")(io::Error::other(fault)))?
        })
    }

    fn record<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Record, BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(async move {
            let read =
                tokio::task::spawn_blocking(move || Ok(this.record(&this.layout.tenant(&tenant)?.meta()?))).await;
            read.map_err(|fault| step("read a tenant's record")(io::Error::other(fault)))?
        })
    }

    fn change<'a>(&'a self, tenant: &'a Tenant, change: Change) -> Pending<'a, Result<Record, BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(async move {
            let work = Arc::clone(&this);
            this.to_the_end(async move { work.change(&tenant, change).await }).await
        })
    }

    fn usage<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Usage, BackendError>> {
        let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
        Box::pin(async move {
            let counted = tokio::task::spawn_blocking(move || this.usage(&tenant)).await;
            counted.map_err(|fault| step("count a tenant's files")(io::Error::other(fault)))?
        })
    }

    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>> {
        Box::pin(async move {
            let live = self.0.live(tenant).await?;
            let meta = self.0.named(tenant).await?;
            Ok(Guest {
                session: meta.session.clone().unwrap_or_default(),
                os: "linux",
                arch: std::env::consts::ARCH,
                user: USER.to_owned(),
                home: HOME.to_owned(),
                pile: meta.pile_state(),
                disk_quota: record::disk_quota(&meta, &self.0.config.common),
                // As it was started with: a change holds from the next start.
                egress: egress::words(&live.egress),
                loopback: true,
            })
        })
    }

    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let slot = self.0.known(tenant)?;
            let (this, tenant) = (Arc::clone(&self.0), tenant.clone());
            let work = async move {
                let _alone = slot.alone().await;
                if let Some(live) = slot.live() {
                    live.end().await?;
                }
                slot.settle().await?;
                // Only who holds a tenant can end its processes.
                match this.held(&tenant).await? {
                    Some(holder) => Err(BackendError::Held { tenant, holder }),
                    None => Ok(()),
                }
            };
            self.0.to_the_end(work).await
        })
    }

    fn holder<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Option<String>, BackendError>> {
        Box::pin(async move { if self.is_live(tenant) { Ok(None) } else { self.0.held(tenant).await } })
    }

    fn is_live(&self, tenant: &Tenant) -> bool {
        let slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.get(tenant).is_some_and(|slot| slot.live().is_some())
    }

    fn has_processes(&self, tenant: &Tenant) -> bool {
        let live = {
            let slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.get(tenant).and_then(|slot| slot.live())
        };
        live.is_some_and(|live| live.has_processes())
    }

    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>> {
        Box::pin(self.0.start(tenant, command))
    }

    fn start_direct<'a>(
        &'a self,
        tenant: &'a Tenant,
        command: CommandSpec,
        streams: Streams,
    ) -> Pending<'a, Result<Direct, BackendError>> {
        Box::pin(self.0.start_direct(tenant, command, streams))
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

    fn append_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(async move { files::append(&*self.0.live(tenant).await?, path, content).await })
    }

    fn make_parents<'a>(&'a self, tenant: &'a Tenant, path: &'a GuestPath) -> Pending<'a, Result<(), FileError>> {
        Box::pin(async move { files::make_parents(&*self.0.live(tenant).await?, path).await })
    }

    fn remove_shared_pile(&self) -> Pending<'_, Result<bool, BackendError>> {
        let folder = self.0.layout.shared();
        Box::pin(async move {
            let removing = || step("remove the shared pile");
            let removed = tokio::task::spawn_blocking(move || pile::destroy_shared(&folder)).await;
            removed.map_err(|fault| removing()(io::Error::other(fault)))?.map_err(removing())
        })
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
            // What does not die keeps what it has; waiting for that would only delay the word that control is lost.
            for slot in slots.iter().filter(|slot| slot.live().is_none()) {
                if let Err(fault) = slot.settle().await {
                    tracing::warn!(%fault, "a disk is still in use");
                }
            }
            self.0.cgroups.leave();
            lost
        })
    }
}

/// Where a host has its devices.
const DEVICES: &str = "/dev";
