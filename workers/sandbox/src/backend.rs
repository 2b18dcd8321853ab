//! What isolates a tenant, and what it can prove about it.
//!
//! A backend knows tenants and commands, and neither JSON, handles nor job ids. It promises that what it says died is
//! dead: [`Command::kill`] returns only with the kernel's word for it.

mod assurances;
mod command;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod file;
pub mod host;
pub mod jail;
mod keeps;
mod kind;
pub mod lima;
#[cfg(target_os = "linux")]
pub mod linux;
pub(crate) mod mark;
pub mod rehearsal;
mod tenant;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use kit::Tenant;

pub use self::assurances::{AppendOnly, Assurances, DiskQuota, Leftovers, Proof, UidMap};
pub use self::command::{Command, CommandSpec, Direct, Ends, Exit, Full, Killed, Shell, Started, Streams, Terminal};
pub use self::error::{BackendError, ControlLost, FileError, NoIsolation};
pub use self::file::{GuestPath, Written};
pub use self::keeps::NotKept;
pub use self::kind::Kind;
pub use self::mark::OtherBackend;
pub use self::tenant::{Change, Found, Guest, Pile, PileState, Provision, Provisioned, Record, Share, Usage};
use crate::settings::TenantSettings;

/// A future that a backend hands out; boxed, since backends are chosen at run time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One way to isolate tenants.
pub trait Backend: Send + Sync + 'static {
    /// The backend's name as credentials and flags spell it: `linux`, `jail` or `lima`.
    fn name(&self) -> &'static str;

    /// What this backend can prove on this host; constant for its life.
    fn assurances(&self) -> &Assurances;

    /// Of how many tenants something was left here by a service that was killed; it was cleared when this was opened.
    fn swept(&self) -> usize {
        0
    }

    /// Makes a tenant's sandbox, or brings one that is half made to its finished state. Idempotent.
    fn provision<'a>(
        &'a self,
        tenant: &'a Tenant,
        spec: &'a Provision,
    ) -> Pending<'a, Result<Provisioned, BackendError>>;

    /// Removes a tenant's sandbox: its processes, then its files. The pile stays unless `delete_pile`.
    fn destroy<'a>(&'a self, tenant: &'a Tenant, delete_pile: bool) -> Pending<'a, Result<(), BackendError>>;

    /// What there is of a tenant here, also after it was removed.
    fn look<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Found, BackendError>>;

    /// Every tenant that is provisioned here, sorted.
    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>>;

    /// What is remembered of a tenant that has a sandbox.
    fn record<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Record, BackendError>>;

    /// Changes what is remembered of a tenant that has a sandbox.
    fn change<'a>(&'a self, tenant: &'a Tenant, change: Change) -> Pending<'a, Result<Record, BackendError>>;

    /// What the tenant's files take up, and what they may. Says it of a running and of a resting sandbox.
    fn usage<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Usage, BackendError>>;

    /// Starts the tenant's sandbox if it is not running. Never makes one.
    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>>;

    /// Ends every process of the tenant, with proof. Files stay. One that another process holds is refused.
    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>>;

    /// Whether a stop that was cut off left something of a sandbox that no longer runs, which another stop takes away.
    fn is_half_stopped<'a>(&'a self, _: &'a Tenant) -> Pending<'a, Result<bool, BackendError>> {
        Box::pin(async { Ok(false) })
    }

    /// Which other process runs the tenant's sandbox, if one does: only that one can end it.
    fn holder<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Option<String>, BackendError>>;

    /// Whether the tenant's sandbox is running in this process now.
    fn is_live(&self, tenant: &Tenant) -> bool;

    /// Whether any process of the tenant's commands is alive, what they left in the background included.
    fn has_processes(&self, tenant: &Tenant) -> bool;

    /// How long the start of a command may take, when the sandbox has to be started for it.
    fn longest_start(&self) -> Duration {
        LONGEST_START
    }

    /// Starts one command in the tenant's running sandbox, opening it first if needed. If the future is dropped, whatever
    /// was begun by it is ended.
    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>>;

    /// Starts one command as [`Backend::start`] does; its streams are descriptors for somebody else to read and write.
    fn start_direct<'a>(
        &'a self,
        tenant: &'a Tenant,
        command: CommandSpec,
        streams: Streams,
    ) -> Pending<'a, Result<Direct, BackendError>>;

    /// Reads a whole regular file as the tenant would see it; refuses one over `most` bytes before reading it.
    fn read_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        most: u64,
    ) -> Pending<'a, Result<Vec<u8>, FileError>>;

    /// Replaces a whole regular file, as the tenant could; the old content stays until the new one is durable.
    fn write_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>>;

    /// Adds to the end of a regular file, or makes it, as the tenant could; also of one that only takes appends. What was
    /// added is durable.
    fn append_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>>;

    /// Makes the folders that a file's path leads through, as the tenant could. Those that are there stay as they are.
    fn make_parents<'a>(&'a self, tenant: &'a Tenant, path: &'a GuestPath) -> Pending<'a, Result<(), FileError>>;

    /// Removes the pile that tenants shared, and says whether there was one. The caller knows that nobody has it.
    fn remove_shared_pile(&self) -> Pending<'_, Result<bool, BackendError>>;

    /// Starts again what ran before this host or this service was started anew, and says how many. Called when serving
    /// begins; one that does not start is logged and holds nobody else up.
    fn reattach(&self) -> Pending<'_, Result<usize, BackendError>> {
        Box::pin(async { Ok(0) })
    }

    /// By what work on a tenant is broken off, where it can be.
    fn halt(&self) -> Option<&host::Halt> {
        None
    }

    /// Ends what this process has begun, and leaves sandboxes running that outlive it; nothing is started afterwards.
    fn leave(&self) -> Pending<'_, Result<(), BackendError>> {
        self.shutdown()
    }

    /// Ends every tenant's processes, with proof; nothing is started afterwards.
    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>>;
}

/// What every backend is built with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which of them it is.
    pub kind: Kind,
    /// The worker's own folder; `tenants/NAME/` lies in it.
    pub state: PathBuf,
    /// The running program, from which a tenant's first process is started again.
    pub program: PathBuf,
    /// Arguments that make [`Config::program`] become a tenant's first process.
    pub init_arguments: Vec<String>,
    /// How long a kill may take before it escalates.
    pub kill_deadline: Duration,
    /// What every tenant gets that has no wish of its own.
    pub common: TenantSettings,
    /// The file that new piles begin as a copy of.
    pub bootstrap_pile: Option<PathBuf>,
}

/// A sandbox starts in a fraction of a second, and a busy host may take many times that.
pub(crate) const LONGEST_START: Duration = Duration::from_secs(60);

/// Long enough for a fork bomb on a busy host.
pub const KILL_DEADLINE: Duration = Duration::from_secs(5);
