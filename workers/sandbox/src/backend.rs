//! What isolates a tenant, and what it can prove about it.
//!
//! A backend knows tenants and commands, and neither JSON, handles nor job ids. It promises that what it says died is
//! dead: [`Command::kill`] returns only with the kernel's word for it.

#[cfg(test)]
pub(crate) mod fake;
#[cfg(target_os = "linux")]
pub mod linux;

use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::settings::{Profile, Size, TenantSettings};

/// A future that a backend hands out; boxed, since backends are chosen at run time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One way to isolate tenants.
pub trait Backend: Send + Sync + 'static {
    /// The backend's name as credentials and flags spell it: `linux`, `jail` or `lima`.
    fn name(&self) -> &'static str;

    /// What this backend can prove on this host; constant for its life.
    fn assurances(&self) -> &Assurances;

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

    /// Ends every process of the tenant, with proof. Files stay.
    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>>;

    /// Whether the tenant's sandbox is running now.
    fn is_live(&self, tenant: &Tenant) -> bool;

    /// Whether any process of the tenant's commands is alive, what they left in the background included.
    fn has_processes(&self, tenant: &Tenant) -> bool;

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

    /// Ends every tenant's processes, with proof; nothing is started afterwards.
    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>>;
}

/// What the operator chose for a new tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    pub pile: Pile,
    /// What was decided for this tenant; it stays as it was where the sandbox is there already.
    pub settings: TenantSettings,
    /// Whether the operator accepted in words that more disk is promised than there is.
    pub overcommit: bool,
}

impl From<Pile> for Provision {
    fn from(pile: Pile) -> Self {
        Self { pile, settings: TenantSettings::default(), overcommit: false }
    }
}

/// What is remembered of a tenant that has a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub settings: TenantSettings,
    /// Whether nobody but the operator may use it for now.
    pub disabled: bool,
    /// The name by which clients hold it, once it was opened; it stays for the sandbox's life.
    pub session: Option<String>,
    pub pile: PileState,
    /// How the bound of the tenant's disk is held.
    pub disk_quota: DiskQuota,
    /// What the settings lead to on this host.
    pub profile: Profile,
}

/// What a tenant's files take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of home and workspace together.
    pub disk: Share,
    /// Files and folders in home and workspace together.
    pub inodes: Share,
    /// Bytes of the tenant's own pile, which its disk does not count.
    pub pile: u64,
}

/// A part that is used of what may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub used: u64,
    /// Absent where nothing bounds it.
    pub bound: Option<u64>,
}

/// A change of what is remembered. It holds from the sandbox's next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A smaller disk than it has is refused; a larger one only where the host can keep the promise, or the operator
    /// accepted in words that it cannot.
    Settings {
        settings: TenantSettings,
        overcommit: bool,
    },
    Disabled(bool),
}

/// Whether the tenant has an append-only file at `/pile/self.pile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pile {
    /// Make it, and fail when it cannot be made append-only.
    Enforced,
    /// Make it even where nothing enforces that it is only appended to: the operator said so in words.
    Unenforced,
    /// Make none.
    None,
    /// [`Pile::Enforced`] where the host can enforce it, else [`Pile::None`].
    IfEnforceable,
}

/// How a tenant's sandbox came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// False when the sandbox was there already.
    pub created: bool,
    /// What became of the pile.
    pub pile: PileState,
}

/// What a host has of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Whether it has a sandbox, if only a half-made one.
    pub sandbox: bool,
    /// Where its pile lies, which outlives the sandbox unless it is deleted.
    pub pile: Option<PathBuf>,
}

/// How the tenant's pile is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PileState {
    Enforced,
    Unenforced,
    None,
}

/// What a tenant finds inside, as `open_session` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The sandbox's own name, the same each time; it tells nothing about the tenant.
    pub session: String,
    pub os: &'static str,
    pub arch: &'static str,
    pub user: String,
    pub home: String,
    pub pile: PileState,
    pub disk_quota: DiskQuota,
    /// What it can reach beyond its own loopback and how, as a phrase; nothing if absent.
    pub egress: Option<String>,
}

/// A command for the tenant's shell.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// Text for `/bin/sh`.
    pub command: String,
    /// Login shell (`-lc`) or clean shell (`-c`, no profile).
    pub shell: Shell,
    /// Guest directory to begin in, itself seen from the home directory; that one when absent.
    pub cwd: Option<String>,
    /// Whether the caller will feed standard input; otherwise it is `/dev/null`.
    pub stdin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Login,
    Clean,
}

/// A command that runs: its streams, and the door to its end.
pub struct Started {
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub command: Box<dyn Command>,
}

/// What a command finds as its standard streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Streams {
    Pipes,
    Terminal(Terminal),
}

/// A terminal of the tenant's own, and never the one that a person sits at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// What it understands, as `TERM` names it.
    pub kind: String,
}

/// A command that runs, and this side's ends of its streams.
pub struct Direct {
    pub ends: Ends,
    pub command: Box<dyn Command>,
}

#[derive(Debug)]
pub enum Ends {
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    Terminal(OwnedFd),
}

/// A command that was started. Dropping it does not end it; the backend reaps it all the same.
pub trait Command: Send + Sync {
    /// Waits for the shell itself to end; what it left in the background may live on.
    fn ended(&self) -> Pending<'_, Exit>;

    /// Ends the command's whole tree and returns when the kernel has proven that nothing of it is left.
    ///
    /// Escalates by itself to the tenant's first process; [`ControlLost`] means that not even that could be proven.
    fn kill(&self) -> Pending<'_, Result<Killed, ControlLost>>;

    /// Whether processes of this command are alive now, the shell included.
    fn is_populated(&self) -> bool;

    /// How many those are, where the backend can count them.
    fn population(&self) -> Option<usize>;

    /// How many of its processes the kernel has ended, up to the shell's end, because the tenant's memory was used up.
    /// Where the kernel counts for whole tenants only, those of the tenant since the command began.
    fn lost_to_memory(&self) -> u64;
}

/// How the shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code, 0 to 255.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By the kernel, because the tenant's memory was used up.
    OutOfMemory,
    /// By the service, because the tenant's files took up more than they may.
    OverQuota,
    /// With the tenant's sandbox, which ended under it.
    SandboxEnded,
}

/// How far a kill had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The command's own tree.
    Command,
    /// The tenant's whole sandbox, since the command's own tree could not be proven dead.
    Sandbox,
}

/// No proof could be had that a tree is dead. The provider must close admission and end.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no proof that the processes of {tenant} are dead: {reason}")]
pub struct ControlLost {
    pub tenant: Tenant,
    pub reason: String,
}

/// A path in the guest's view: where it starts, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPath {
    /// Directory that a relative path starts at, itself seen from the home directory; that one when absent.
    pub cwd: Option<String>,
    pub path: String,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub created: bool,
    /// The file's size afterwards.
    pub size: u64,
}

/// What a backend can prove on this host. `doctor` prints it, `open_session` tells it, tests assert it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assurances {
    pub uid_map: UidMap,
    pub proof: Proof,
    pub append_only: AppendOnly,
    pub disk_quota: DiskQuota,
    /// Whether a command's background processes are visible to the tenant's later commands.
    pub leftovers: Leftovers,
    /// How each limit is held, in words for people: `memory: cgroup v1`, `processes: rlimit`.
    pub limits: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UidMap {
    /// A range of its own for each tenant.
    Range,
    /// The one id of the user who runs the service.
    Single,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Cgroup,
    PidNamespace,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOnly {
    Enforced,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskQuota {
    Hard,
    Soft,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    Visible,
    Hidden,
}

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("tenant {0} has no sandbox")]
    NotProvisioned(Tenant),
    #[error("the sandbox of {tenant} is held by another playground process ({holder})")]
    Held { tenant: Tenant, holder: String },
    #[error("the directory {0} does not exist or cannot be entered")]
    NoDirectory(String),
    #[error("append-only cannot be enforced here: {0}")]
    NotEnforceable(String),
    #[error("this host cannot isolate: {0}")]
    NoIsolation(NoIsolation),
    #[error("{step}")]
    Step {
        /// What was being done, as a phrase: `mount the home of alice`.
        step: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the sandbox of {0} ended unexpectedly")]
    SandboxEnded(Tenant),
    #[error(transparent)]
    ControlLost(#[from] ControlLost),
    #[error("the sandbox of {0} is disabled by the operator")]
    Disabled(Tenant),
    #[error(
        "{wanted} cannot be promised: {free} are free and not promised to other tenants; choose a smaller --disk, or \
         promise it all the same with --overcommit"
    )]
    NoRoom { wanted: Size, free: Size },
    #[error("the self-test from inside failed: {0}")]
    SelfTest(String),
    #[error("the service is stopping")]
    ShuttingDown,
}

impl BackendError {
    /// The loss of control that this is, if it is one: then the process has to end with code 11.
    #[must_use]
    pub fn control_lost(&self) -> Option<&ControlLost> {
        if let Self::ControlLost(lost) = self { Some(lost) } else { None }
    }
}

/// Which setting of the host stands in the way of isolation, and how to change it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}; {remedy}")]
pub struct NoIsolation {
    /// The kernel facility that was tried.
    pub what: String,
    /// What the kernel said.
    pub why: String,
    /// The command or setting that lifts it.
    pub remedy: String,
}

/// Why a file tool did not do its work. Each is something the tenant can understand and act on.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}: no such file or directory")]
    NotFound(String),
    #[error("{0}: permission denied")]
    Denied(String),
    #[error("{0} is a directory")]
    IsDirectory(String),
    #[error("{path} is {kind}, not a regular file")]
    NotRegular { path: String, kind: &'static str },
    #[error("{path} has {size} bytes; at most {most} can be read at once")]
    TooLarge { path: String, size: u64, most: u64 },
    #[error("no space left for {0}")]
    NoSpace(String),
    #[error("only {written} of {bytes} bytes were appended to {path}")]
    Partial { path: String, written: u64, bytes: u64 },
    #[error("{path}: {source}")]
    Other { path: String, source: std::io::Error },
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// What every backend is built with.
#[derive(Clone, Debug)]
pub struct Config {
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

/// Long enough for a fork bomb on a busy host.
pub const KILL_DEADLINE: Duration = Duration::from_secs(5);
