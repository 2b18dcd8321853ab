//! What a backend does, by machines.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use tokio::time::timeout;

use super::machine::Machine;
use super::name::Name;
use super::{HOME, Lima, is_stranger, machine, made, step};
use crate::backend::host::{Halt, direct, started};
use crate::backend::{
    Assurances, Backend, BackendError, Change, CommandSpec, Direct, DiskQuota, FileError, Found, Guest, GuestPath,
    LONGEST_START, Pending, Provision, Provisioned, Record, Share, Started, Streams, Usage, Written, keeps,
};

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
        self.0.settings.admin_limit() * 2 + LONGEST_START
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

    fn halt(&self) -> Option<&Halt> {
        self.0.limactl.runner().halt()
    }

    fn leave(&self) -> Pending<'_, Result<(), BackendError>> {
        Box::pin(async {
            self.0.limactl.leave();
            for machine in self.0.ours()? {
                machine.end_commands().await;
            }
            Ok(())
        })
    }

    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>> {
        let this = Arc::clone(&self.0);
        Box::pin(self.0.to_the_end(async move {
            this.limactl.leave();
            let end = |machine: Arc<Machine>| async move {
                let stopped = timeout(ENDED, machine.stop_at_once()).await;
                stopped.unwrap_or_else(|_elapsed| Err(late(&machine.name())))
            };
            let ends: Vec<_> = this.ours()?.into_iter().map(|machine| this.begin(end(machine))).collect();
            let mut outcome = Ok(());
            for ended in ends {
                match ended.await.unwrap_or(Err(BackendError::ShuttingDown)) {
                    // Nothing of ours runs under that name.
                    Err(fault) if is_stranger(&fault) => {}
                    Err(fault) => outcome = Err(fault),
                    Ok(()) => {}
                }
            }
            outcome
        }))
    }
}

fn late(name: &Name) -> BackendError {
    let why = format!("it was not seen to stop within {} s, and may run still", ENDED.as_secs());
    step(format!("stop the machine {}", name.as_str()), io::Error::other(why))
}

/// All of them at once, before whoever waits for this process ends it.
const ENDED: Duration = Duration::from_secs(17);
