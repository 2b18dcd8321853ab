//! The jails as a backend.

use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::assurances::{assurances, egress};
use super::fault::JailFault;
use super::jails::Jails;
use super::names::JailName;
use super::network::Network;
use super::places::HOME;
use super::records::Remembered;
use super::turns::Turns;
use crate::backend::host::files::CleanShell;
use crate::backend::host::{Halt, Running};
use crate::backend::{
    Assurances, Backend, BackendError, Change, CommandSpec, Direct, FileError, Found, Guest, GuestPath, Pending, Pile,
    PileState, Provision, Provisioned, Record, Started, Streams, Usage, Written,
};

/// The backend.
pub(super) struct JailBackend(Arc<Inner>);

struct Inner {
    jails: Jails,
    assurances: Assurances,
    /// The programs that run tenants' commands.
    running: Running,
    turns: Turns,
}

impl JailBackend {
    pub(super) async fn open(jails: Jails) -> Result<Self, BackendError> {
        let assurances = assurances(&jails).await.map_err(|fault| match fault.foreign() {
            Some(why) => BackendError::NoIsolation(jails.settings.no_freebsd(&why)),
            None => fault.during("ask the host of the jails"),
        })?;
        if jails.settings.network == Network::Inherit {
            tracing::warn!("tenants have the host's own network: its loopback, and what listens there, included");
        }
        let (running, turns) = (Running::default(), Turns::new());
        Ok(Self(Arc::new(Inner { jails, assurances, running, turns })))
    }

    async fn turn<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        doing: &'static str,
        work: impl Future<Output = Result<T, JailFault>> + Send + 'static,
    ) -> Result<T, BackendError> {
        self.0.turns.take(tenant, doing, work).await
    }

    fn of(&self, tenant: &Tenant) -> (Arc<Inner>, Tenant) {
        (Arc::clone(&self.0), tenant.clone())
    }

    /// The tenant's jail, which runs.
    async fn live(&self, tenant: &Tenant) -> Result<JailName, BackendError> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            if !this.jails.ran(&owner) {
                this.jails.attach(&owner).await?;
            }
            Ok(this.jails.places(&owner).await?.jail)
        };
        self.turn(tenant, "open the sandbox", work).await
    }

    async fn files<T>(
        &self,
        tenant: &Tenant,
        work: impl AsyncFnOnce(CleanShell<'_>) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let (jail, jails) = (self.live(tenant).await?, &self.0.jails);
        let inside = |words: Vec<String>| jails.inside(&jail, words);
        let (runner, ending) = (jails.host.runner(), jails.ending(tenant));
        work(CleanShell { runner, inside: &inside, home: HOME, limit: LONGEST_FILE, ending: &*ending }).await
    }
}

impl Inner {
    fn record(&self, jail: &JailName, remembered: Remembered) -> Record {
        let profile = remembered.settings.over(&self.jails.common);
        Record {
            in_force: self.jails.in_force(&profile, &remembered.settings),
            common: self.jails.common.clone(),
            profile,
            settings: remembered.settings,
            disabled: remembered.disabled,
            session: Some(jail.to_string()),
            pile: PileState::Enforced,
            disk_quota: self.assurances.disk_quota,
        }
    }
}

impl Backend for JailBackend {
    fn name(&self) -> &'static str {
        "jail"
    }

    fn assurances(&self) -> &Assurances {
        &self.0.assurances
    }

    /// One that does not come up, be it that it is said to be somebody else's, is reported by its name and left alone, and
    /// the others come up. The original ended its start there; but a tenant is root in its own files, so that by a link in
    /// them it would keep everybody out. Whose a sandbox is, is asked of each by itself, and at each use again.
    fn reattach(&self) -> Pending<'_, Result<usize, BackendError>> {
        Box::pin(async {
            let brought = self.0.jails.attach_all().await;
            brought.map_err(|fault| fault.during("bring up the sandboxes that are there"))
        })
    }

    fn provision<'a>(
        &'a self,
        tenant: &'a Tenant,
        spec: &'a Provision,
    ) -> Pending<'a, Result<Provisioned, BackendError>> {
        let ((this, owner), spec) = (self.of(tenant), spec.clone());
        let work = async move {
            if spec.pile == Pile::None {
                return Err(JailFault::NoSuchSetting("way to be without a pile"));
            }
            let created = this.jails.provision(&owner, &spec.settings).await?;
            Ok(Provisioned { created, pile: PileState::Enforced })
        };
        Box::pin(self.turn(tenant, "make the sandbox", work))
    }

    fn destroy<'a>(&'a self, tenant: &'a Tenant, delete_pile: bool) -> Pending<'a, Result<(), BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move { this.jails.destroy(&owner, delete_pile).await };
        Box::pin(self.turn(tenant, "remove the sandbox", work))
    }

    fn look<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Found, BackendError>> {
        let (this, owner) = self.of(tenant);
        Box::pin(self.turn(tenant, "look for the sandbox", async move { this.jails.look(&owner).await }))
    }

    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>> {
        Box::pin(async { self.0.jails.tenants().await.map_err(|fault| fault.during("list the sandboxes")) })
    }

    fn record<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Record, BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            let places = this.jails.known(&owner).await?;
            Ok(this.record(&places.jail, this.jails.recall(&places).await?))
        };
        Box::pin(self.turn(tenant, "read the record", work))
    }

    fn change<'a>(&'a self, tenant: &'a Tenant, change: Change) -> Pending<'a, Result<Record, BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            let places = this.jails.known(&owner).await?;
            let mut wanted = this.jails.recall(&places).await?;
            match change {
                // ZFS promises nobody anything by a bound, so that none can be too large.
                Change::Settings { settings, overcommit: _ } => wanted.settings = settings,
                Change::Disabled(disabled) => wanted.disabled = disabled,
            }
            this.jails.amend(&places, &wanted).await?;
            Ok(this.record(&places.jail, wanted))
        };
        Box::pin(self.turn(tenant, "change the record", work))
    }

    fn usage<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Usage, BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            let places = this.jails.known(&owner).await?;
            // Who asks for this is also shown whether it runs.
            this.jails.running().await?;
            this.jails.usage(&places).await
        };
        Box::pin(self.turn(tenant, "count the files", work))
    }

    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            let jail = this.jails.attach(&owner).await?.jail;
            Ok(Guest {
                session: jail.to_string(),
                os: "freebsd",
                arch: if this.jails.host.runner().is_local_root() { std::env::consts::ARCH } else { "unknown" },
                user: "root".to_owned(),
                home: HOME.to_owned(),
                pile: PileState::Enforced,
                disk_quota: this.assurances.disk_quota,
                egress: egress(&this.jails.settings.network),
                loopback: this.jails.settings.network != Network::None,
            })
        };
        Box::pin(self.turn(tenant, "open the sandbox", work))
    }

    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move {
            let places = this.jails.known(&owner).await?;
            this.jails.stop(&places).await
        };
        Box::pin(self.turn(tenant, "end the processes", work))
    }

    /// One whose jail has ended while its files are still mounted on.
    fn is_half_stopped<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<bool, BackendError>> {
        let (this, owner) = self.of(tenant);
        let work = async move { this.jails.is_half_stopped(&this.jails.known(&owner).await?).await };
        Box::pin(self.turn(tenant, "look for what is left of it", work))
    }

    /// Jails are the host's, and nobody's own.
    fn holder<'a>(&'a self, _: &'a Tenant) -> Pending<'a, Result<Option<String>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    fn is_live(&self, tenant: &Tenant) -> bool {
        self.0.jails.ran(tenant)
    }

    /// What runs in a jail is not counted: one that runs may always have some, and so goes on running when it is idle.
    fn has_processes(&self, tenant: &Tenant) -> bool {
        self.0.jails.ran(tenant)
    }

    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>> {
        Box::pin(async move {
            let jail = self.live(tenant).await?;
            let (process, started) = self.0.jails.start(tenant, &jail, &command)?;
            self.0.running.add(tenant, process);
            Ok(started)
        })
    }

    fn start_direct<'a>(
        &'a self,
        tenant: &'a Tenant,
        command: CommandSpec,
        streams: Streams,
    ) -> Pending<'a, Result<Direct, BackendError>> {
        Box::pin(async move {
            let jail = self.live(tenant).await?;
            let (process, direct) = self.0.jails.start_direct(tenant, &jail, &command, &streams)?;
            self.0.running.add(tenant, process);
            Ok(direct)
        })
    }

    fn read_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        most: u64,
    ) -> Pending<'a, Result<Vec<u8>, FileError>> {
        Box::pin(self.files(tenant, async move |shell| shell.read(path, most).await))
    }

    fn write_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(self.files(tenant, async move |shell| shell.write(path, &content).await))
    }

    fn append_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(self.files(tenant, async move |shell| shell.append(path, &content).await))
    }

    fn make_parents<'a>(&'a self, tenant: &'a Tenant, path: &'a GuestPath) -> Pending<'a, Result<(), FileError>> {
        Box::pin(self.files(tenant, async move |shell| shell.make_parents(path).await))
    }

    fn remove_shared_pile(&self) -> Pending<'_, Result<bool, BackendError>> {
        let fault = JailFault::NoSuchSetting("way to remove the shared pile: it is the organisation's");
        Box::pin(async { Err(fault.during("remove the shared pile")) })
    }

    fn halt(&self) -> Option<&Halt> {
        self.0.jails.host.runner().halt()
    }

    /// Jails outlive the service, as the original's do; only the commands end that it has started.
    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>> {
        Box::pin(async {
            self.0.running.end_all(GRACE).await;
            self.0.turns.drained().await;
            Ok(())
        })
    }
}

/// As long as the tools wait for a file.
const LONGEST_FILE: Duration = Duration::from_secs(300);

/// What a command gets to end before it is killed.
const GRACE: Duration = Duration::from_secs(7);
