//! One tenant's machine.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kit::Tenant;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::limactl::Limactl;
use super::name::Name;
use super::progress::Progress;
use super::record::Records;
use super::{RUNNING, is_stranger, plan, step};
use crate::backend::host::{Argv, End, Ending, Process, Running, Step};
use crate::backend::{BackendError, ControlLost, Ends, Exit, Killed, Pending, Streams};

/// What is known of a machine, and the turn that whoever changes it has to have.
pub(super) struct Machine {
    tenant: Tenant,
    name: Name,
    limactl: Arc<Limactl>,
    records: Arc<Records>,
    turn: Semaphore,
    live: AtomicBool,
    /// How often all that ran in it was ended.
    ends: AtomicU64,
    running: Running,
}

impl Machine {
    pub(super) fn new(tenant: Tenant, name: Name, (limactl, records): (Arc<Limactl>, Arc<Records>)) -> Self {
        let (live, ends) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { tenant, name, limactl, records, turn: Semaphore::new(1), live, ends, running: Running::default() }
    }

    pub(super) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(super) fn name(&self) -> Name {
        self.name.clone()
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self, live: bool) {
        self.live.store(live, Ordering::Relaxed);
    }

    /// Waits for the turn to change it.
    pub(super) async fn alone(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turn.acquire().await.ok()
    }

    /// Makes it of a template, and starts it.
    pub(super) async fn make(&self, template: &Path) -> Result<(), BackendError> {
        if !self.limactl.is_only_shown() {
            tracing::info!(tenant = %self.tenant, "a machine is made; the first one fetches an image, which takes minutes");
        }
        self.bring_up(&plan::make(&self.name, template)).await
    }

    /// Starts it unless it runs.
    pub(super) async fn start(&self) -> Result<(), BackendError> {
        match self.state().await? {
            Some(state) if state == RUNNING => {
                self.tell(true);
                Ok(())
            }
            Some(_) => self.bring_up(&[plan::start(&self.name)]).await,
            None => {
                self.tell(false);
                let gone =
                    format!("there is none of this name any more; `playground user create {}` makes it", self.tenant);
                Err(step(format!("start the machine {}", self.name.as_str()), io::Error::other(gone)))
            }
        }
    }

    async fn bring_up(&self, plan: &[Step]) -> Result<(), BackendError> {
        let progress = Progress::begin(&self.tenant);
        let Some(done) = self.limactl.bring_up(plan, &|line| progress.hear(line)).await else {
            let why = "it was broken off, since this process ends";
            return Err(step(format!("bring up the machine {}", self.name.as_str()), io::Error::other(why)));
        };
        done.map_err(|failed| progress.explain(failed))?;
        // What limactl says of itself is one thing, and what it says of the machine another.
        let state = self.state().await?;
        if state.as_deref() != Some(RUNNING) {
            let state = state.unwrap_or_else(|| "not there".to_owned());
            let why = format!("limactl has done all that was asked of it, and the machine is {state}");
            return Err(step(format!("start the machine {}", self.name.as_str()), io::Error::other(why)));
        }
        self.tell(true);
        Ok(())
    }

    /// Ends it before this process does, which is not waited for for long: one that was not seen to run is not asked.
    pub(super) async fn stop_at_once(&self) -> Result<(), BackendError> {
        let _alone = self.alone().await;
        if self.is_live() {
            match timeout(ASKED, self.stop()).await {
                Ok(stopped) => return stopped,
                Err(_elapsed) => {
                    tracing::warn!(tenant = %self.tenant, "a machine does not stop within {} s and is ended", ASKED.as_secs());
                }
            }
        }
        match self.state().await? {
            None => Ok(()),
            Some(state) if state == STOPPED => Ok(()),
            Some(_) => self.kill().await,
        }
    }

    /// Ends it with all that runs in it, by asking first. Its state is the proof.
    pub(super) async fn stop(&self) -> Result<(), BackendError> {
        self.end_commands().await;
        if self.state().await?.is_some_and(|state| state == RUNNING)
            && let Err(fault) = self.limactl.attempt(&plan::stop(&self.name)).await
        {
            tracing::warn!(tenant = %self.tenant, %fault, "a machine does not stop when it is asked");
            self.kill().await?;
        }
        self.tell(false);
        Ok(())
    }

    pub(super) async fn delete(&self) -> Result<(), BackendError> {
        self.end_commands().await;
        if self.state().await?.is_none() {
            self.tell(false);
            return Ok(());
        }
        self.limactl.act(&plan::destroy(&self.name), None).await?;
        self.tell(false);
        match self.state().await? {
            None => Ok(()),
            Some(_) => Err(step("remove the machine", io::Error::other("limactl has it still"))),
        }
    }

    /// Ends this side's ends of commands.
    pub(super) async fn end_commands(&self) {
        self.running.end(&self.tenant, GRACE).await;
    }

    pub(super) fn run(&self, argv: &Argv, stdin: bool, streams: &Streams) -> Result<(Process, Ends), BackendError> {
        let (process, ends) = self.limactl.start(argv, stdin, streams)?;
        self.running.add(&self.tenant, process.clone());
        Ok((process, ends))
    }

    /// Its state, if it is there. Another one that has its name is a fault, since nothing is to be done to that.
    pub(super) async fn state(&self) -> Result<Option<String>, BackendError> {
        let Some(listed) = self.limactl.all().await?.remove(self.name.as_str()) else { return Ok(None) };
        self.records.recognise(&self.tenant, &listed)?;
        Ok(Some(listed.state))
    }

    /// Whether it runs, as the host says now. One that does not is started by the next use.
    async fn is_seen_to_run(&self) -> bool {
        match self.state().await {
            Ok(Some(state)) if state == RUNNING => true,
            Ok(_) => {
                self.tell(false);
                false
            }
            Err(fault) => {
                tracing::warn!(tenant = %self.tenant, fault = kit::chain(&fault), "whether a command has run is not known");
                false
            }
        }
    }

    /// Ends it without asking, and looks.
    async fn kill(&self) -> Result<(), BackendError> {
        if let Err(fault) = self.state().await
            && is_stranger(&fault)
        {
            return Err(fault);
        }
        let killed = self.limactl.attempt(&plan::kill(&self.name)).await;
        match (killed, self.state().await?) {
            (_, Some(state)) if state == RUNNING => {
                Err(step("stop the machine by force", io::Error::other("it runs still")))
            }
            (Err(fault), Some(state)) if state != STOPPED => {
                Err(step("stop the machine by force", io::Error::other(fault)))
            }
            _ => {
                self.tell(false);
                self.ends.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

/// What the end of a command of this machine means, which begins now.
pub(super) fn ending(machine: &Arc<Machine>) -> Arc<dyn Ending> {
    Arc::new(OfMachine { machine: Arc::clone(machine), ends: machine.ends.load(Ordering::Relaxed) })
}

struct OfMachine {
    machine: Arc<Machine>,
    /// How often all had been ended when the command began.
    ends: u64,
}

impl OfMachine {
    fn is_over(&self) -> bool {
        self.machine.ends.load(Ordering::Relaxed) != self.ends
    }
}

impl Ending for OfMachine {
    /// The end of `limactl` proves nothing, so that the machine ends, and is started again.
    fn prove(&self, _: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async {
            let machine = &self.machine;
            let _alone = machine.alone().await;
            if self.is_over() {
                return Ok(Killed::Sandbox);
            }
            if let Err(fault) = machine.kill().await {
                return Err(ControlLost { tenant: machine.tenant.clone(), reason: kit::chain(&fault) });
            }
            if let Err(fault) = machine.start().await {
                // Nothing of it lives, and the next use tries again.
                tracing::warn!(tenant = %machine.tenant, fault = kit::chain(&fault), "a machine does not start again");
            }
            Ok(Killed::Sandbox)
        })
    }

    /// On a machine that rests `limactl shell` runs nothing, and ends as a command could have.
    fn exit(&self, exit: Exit) -> Pending<'_, Exit> {
        Box::pin(async {
            let is_doubtful = matches!(exit, Exit::Code(code) if NOTHING_RUN.contains(&code));
            if is_doubtful && (self.is_over() || !self.machine.is_seen_to_run().await) {
                return Exit::SandboxEnded;
            }
            exit
        })
    }
}

pub(super) const STOPPED: &str = "Stopped";

/// What `limactl shell` ends with when it has run nothing, among other things: of a machine that rests, 0 with some versions
/// where nobody is asked whether it is to be started, or says no, and 1 with the others; 255 is what `ssh` below it has for
/// one that goes away.
const NOTHING_RUN: [i32; 3] = [0, 1, 255];

/// `limactl shell` has nothing to tidy up.
const GRACE: Duration = Duration::from_secs(1);

/// How long a machine may take to stop by itself when this process ends: those who wait for that wait 20 seconds.
const ASKED: Duration = Duration::from_secs(10);
