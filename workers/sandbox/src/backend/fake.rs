//! A backend for tests of what stands above: it does what the script says, and any call the script does not expect is a
//! fault of the test.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use kit::Tenant;
use tokio::io::{AsyncRead, DuplexStream, ReadBuf, duplex};
use tokio::sync::{oneshot, watch};

use super::{
    AppendOnly, Assurances, Backend, BackendError, Change, Command, CommandSpec, ControlLost, Direct, DiskQuota, Exit,
    FileError, Found, Guest, GuestPath, Killed, LONGEST_START, Leftovers, Pending, PileState, Proof, Provision,
    Provisioned, Record, Started, Streams, UidMap, Usage, Written,
};
use crate::settings::TenantSettings;

/// A backend that expects exactly the calls it was told of, in their order.
pub(crate) struct Fake {
    assurances: Assurances,
    longest_start: Duration,
    expected: Mutex<VecDeque<Expected>>,
    unexpected: Mutex<Vec<String>>,
    tenants: Mutex<BTreeMap<Tenant, Known>>,
}

/// What the fake remembers of a tenant, so that not every look at it has to be expected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) live: bool,
    pub(crate) disabled: bool,
    /// Whether something that a command left is alive.
    pub(crate) populated: bool,
}

enum Expected {
    Open(Tenant, Result<(), BackendError>),
    Start(Tenant, String, Result<Box<Started>, BackendError>),
    /// After a while.
    Late(Tenant, Duration, Box<Started>),
    /// Not answered; the sender notices when nobody waits any more.
    Hang(Tenant, oneshot::Sender<()>),
    Read(Tenant, String, Result<Vec<u8>, FileError>),
    Write(Tenant, String, Vec<u8>),
    Append(Tenant, String, Vec<u8>),
    Parents(Tenant, String),
    Provision(Tenant),
    Destroy(Tenant),
    Stop(Tenant),
    Shutdown,
}

/// The test's side of a command that the backend has started.
pub(crate) struct Script {
    pub(crate) stdin: DuplexStream,
    pub(crate) stdout: DuplexStream,
    pub(crate) stderr: DuplexStream,
    pub(crate) exit: watch::Sender<Option<Exit>>,
    /// Whether anything of the command is alive.
    pub(crate) populated: watch::Sender<bool>,
    /// Becomes true when the kill was asked for.
    pub(crate) killed: watch::Receiver<bool>,
    /// What the kill answers; it waits until this is there.
    pub(crate) proof: watch::Sender<Option<Result<Killed, ControlLost>>>,
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        Self::that_starts_within(LONGEST_START)
    }

    pub(crate) fn that_starts_within(longest_start: Duration) -> Arc<Self> {
        let assurances = Assurances {
            uid_map: UidMap::Range,
            proof: Proof::PidNamespace,
            append_only: AppendOnly::None,
            disk_quota: DiskQuota::None,
            leftovers: Leftovers::Hidden,
            limits: Vec::new(),
        };
        Arc::new(Self {
            assurances,
            longest_start,
            expected: Mutex::default(),
            unexpected: Mutex::default(),
            tenants: Mutex::default(),
        })
    }

    pub(crate) fn expect_open(&self, tenant: &Tenant) {
        self.expect(Expected::Open(tenant.clone(), Ok(())));
    }

    pub(crate) fn expect_open_to_fail(&self, tenant: &Tenant, fault: BackendError) {
        self.expect(Expected::Open(tenant.clone(), Err(fault)));
    }

    pub(crate) fn expect_start(&self, tenant: &Tenant, command: &str) -> Script {
        let (started, script) = script();
        self.expect(Expected::Start(tenant.clone(), command.to_owned(), Ok(Box::new(started))));
        script
    }

    /// A command whose output cannot be read without a panic.
    pub(crate) fn expect_start_to_break(&self, tenant: &Tenant, command: &str) -> Script {
        let (started, script) = script();
        let broken = Started { stdout: Box::new(Broken), ..started };
        self.expect(Expected::Start(tenant.clone(), command.to_owned(), Ok(Box::new(broken))));
        script
    }

    /// A start that takes a while.
    pub(crate) fn expect_start_after(&self, tenant: &Tenant, delay: Duration) -> Script {
        let (started, script) = script();
        self.expect(Expected::Late(tenant.clone(), delay, Box::new(started)));
        script
    }

    /// A start that is never answered; what is returned resolves when nobody waits for it any more.
    pub(crate) fn expect_start_to_hang(&self, tenant: &Tenant) -> oneshot::Receiver<()> {
        let (waiting, dropped) = oneshot::channel();
        self.expect(Expected::Hang(tenant.clone(), waiting));
        dropped
    }

    pub(crate) fn expect_start_to_fail(&self, tenant: &Tenant, command: &str, fault: BackendError) {
        self.expect(Expected::Start(tenant.clone(), command.to_owned(), Err(fault)));
    }

    pub(crate) fn expect_read(&self, tenant: &Tenant, path: &str, answer: Result<Vec<u8>, FileError>) {
        self.expect(Expected::Read(tenant.clone(), path.to_owned(), answer));
    }

    pub(crate) fn expect_write(&self, tenant: &Tenant, path: &str, content: &[u8]) {
        self.expect(Expected::Write(tenant.clone(), path.to_owned(), content.to_vec()));
    }

    pub(crate) fn expect_append(&self, tenant: &Tenant, path: &str, content: &[u8]) {
        self.expect(Expected::Append(tenant.clone(), path.to_owned(), content.to_vec()));
    }

    pub(crate) fn expect_parents(&self, tenant: &Tenant, path: &str) {
        self.expect(Expected::Parents(tenant.clone(), path.to_owned()));
    }

    pub(crate) fn expect_provision(&self, tenant: &Tenant) {
        self.expect(Expected::Provision(tenant.clone()));
    }

    pub(crate) fn expect_destroy(&self, tenant: &Tenant) {
        self.expect(Expected::Destroy(tenant.clone()));
    }

    pub(crate) fn expect_stop(&self, tenant: &Tenant) {
        self.expect(Expected::Stop(tenant.clone()));
    }

    /// Changes what is known of a tenant.
    pub(crate) fn know(&self, tenant: &Tenant, change: impl FnOnce(&mut Known)) {
        change(self.tenants.lock().unwrap().entry(tenant.clone()).or_default());
    }

    fn known(&self, tenant: &Tenant) -> Known {
        self.tenants.lock().unwrap().get(tenant).copied().unwrap_or_default()
    }

    /// The session of a tenant of this fake.
    fn session(tenant: &Tenant) -> String {
        format!("s_of_{tenant}")
    }

    pub(crate) fn expect_shutdown(&self) {
        self.expect(Expected::Shutdown);
    }

    fn expect(&self, call: Expected) {
        self.expected.lock().unwrap().push_back(call);
    }

    fn next(&self) -> Option<Expected> {
        self.expected.lock().unwrap().pop_front()
    }

    fn refuse(&self, call: String) -> BackendError {
        self.unexpected.lock().unwrap().push(call);
        BackendError::ShuttingDown
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(*self.unexpected.lock().unwrap(), Vec::<String>::new(), "unexpected calls");
            assert!(self.expected.lock().unwrap().is_empty(), "calls that were expected did not come");
        }
    }
}

impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn assurances(&self) -> &Assurances {
        &self.assurances
    }

    fn provision<'a>(&'a self, tenant: &'a Tenant, _: &'a Provision) -> Pending<'a, Result<Provisioned, BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Provision(expected)) if expected == *tenant => {
                    Ok(Provisioned { created: true, pile: PileState::None })
                }
                _ => Err(self.refuse(format!("provision {tenant}"))),
            }
        })
    }

    fn destroy<'a>(&'a self, tenant: &'a Tenant, _: bool) -> Pending<'a, Result<(), BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Destroy(expected)) if expected == *tenant => Ok(()),
                _ => Err(self.refuse(format!("destroy {tenant}"))),
            }
        })
    }

    fn look<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Found, BackendError>> {
        Box::pin(async move { Err(self.refuse(format!("look for {tenant}"))) })
    }

    fn tenants(&self) -> Pending<'_, Result<Vec<Tenant>, BackendError>> {
        Box::pin(async move { Ok(self.tenants.lock().unwrap().keys().cloned().collect()) })
    }

    fn record<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Record, BackendError>> {
        Box::pin(async move {
            Ok(Record {
                settings: TenantSettings::default(),
                disabled: self.known(tenant).disabled,
                session: Some(Self::session(tenant)),
                pile: PileState::None,
                disk_quota: DiskQuota::None,
                profile: TenantSettings::default().over(&TenantSettings::default()),
                common: TenantSettings::default(),
                in_force: TenantSettings::default(),
            })
        })
    }

    fn change<'a>(&'a self, tenant: &'a Tenant, change: Change) -> Pending<'a, Result<Record, BackendError>> {
        let fault = self.refuse(format!("change {tenant}: {change:?}"));
        Box::pin(async move { Err(fault) })
    }

    fn usage<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Usage, BackendError>> {
        let fault = self.refuse(format!("usage {tenant}"));
        Box::pin(async move { Err(fault) })
    }

    fn open<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<Guest, BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Open(expected, answer)) if expected == *tenant => answer.map(|()| {
                    self.know(tenant, |known| known.live = true);
                    Guest {
                        session: Self::session(tenant),
                        os: "linux",
                        arch: "x86_64",
                        user: "root".to_owned(),
                        home: "/root".to_owned(),
                        pile: PileState::None,
                        disk_quota: DiskQuota::None,
                        egress: None,
                        loopback: true,
                    }
                }),
                _ => Err(self.refuse(format!("open {tenant}"))),
            }
        })
    }

    fn stop<'a>(&'a self, tenant: &'a Tenant) -> Pending<'a, Result<(), BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Stop(expected)) if expected == *tenant => {
                    self.know(tenant, |known| known.live = false);
                    Ok(())
                }
                _ => Err(self.refuse(format!("stop {tenant}"))),
            }
        })
    }

    fn holder<'a>(&'a self, _tenant: &'a Tenant) -> Pending<'a, Result<Option<String>, BackendError>> {
        Box::pin(async { Ok(None) })
    }

    fn is_live(&self, tenant: &Tenant) -> bool {
        self.known(tenant).live
    }

    fn has_processes(&self, tenant: &Tenant) -> bool {
        self.known(tenant).populated
    }

    fn longest_start(&self) -> Duration {
        self.longest_start
    }

    fn start<'a>(&'a self, tenant: &'a Tenant, command: CommandSpec) -> Pending<'a, Result<Started, BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Start(expected, text, answer)) if expected == *tenant && text == command.command => {
                    answer.map(|started| *started)
                }
                Some(Expected::Late(expected, delay, started)) if expected == *tenant => {
                    tokio::time::sleep(delay).await;
                    Ok(*started)
                }
                Some(Expected::Hang(expected, waiting)) if expected == *tenant => {
                    let _waiting = waiting;
                    std::future::pending().await
                }
                _ => Err(self.refuse(format!("start `{}` of {tenant}", command.command))),
            }
        })
    }

    fn start_direct<'a>(
        &'a self,
        tenant: &'a Tenant,
        command: CommandSpec,
        _: Streams,
    ) -> Pending<'a, Result<Direct, BackendError>> {
        Box::pin(async move { Err(self.refuse(format!("start `{}` of {tenant} directly", command.command))) })
    }

    fn read_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        _: u64,
    ) -> Pending<'a, Result<Vec<u8>, FileError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Read(expected, name, answer)) if expected == *tenant && name == path.path => answer,
                _ => Err(self.refuse(format!("read {} of {tenant}", path.path)).into()),
            }
        })
    }

    fn write_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Write(expected, name, bytes))
                    if expected == *tenant && name == path.path && bytes == content =>
                {
                    let bytes = content.len() as u64;
                    Ok(Written { bytes, created: true, size: bytes })
                }
                _ => Err(self.refuse(format!("write {} of {tenant}", path.path)).into()),
            }
        })
    }

    fn append_file<'a>(
        &'a self,
        tenant: &'a Tenant,
        path: &'a GuestPath,
        content: Vec<u8>,
    ) -> Pending<'a, Result<Written, FileError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Append(expected, name, bytes))
                    if expected == *tenant && name == path.path && bytes == content =>
                {
                    let bytes = content.len() as u64;
                    Ok(Written { bytes, created: false, size: 100 + bytes })
                }
                _ => Err(self.refuse(format!("append to {} of {tenant}", path.path)).into()),
            }
        })
    }

    fn make_parents<'a>(&'a self, tenant: &'a Tenant, path: &'a GuestPath) -> Pending<'a, Result<(), FileError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Parents(expected, name)) if expected == *tenant && name == path.path => Ok(()),
                _ => Err(self.refuse(format!("make the parents of {} of {tenant}", path.path)).into()),
            }
        })
    }

    fn remove_shared_pile(&self) -> Pending<'_, Result<bool, BackendError>> {
        let fault = self.refuse("remove the shared pile".to_owned());
        Box::pin(async move { Err(fault) })
    }

    fn shutdown(&self) -> Pending<'_, Result<(), BackendError>> {
        Box::pin(async move {
            match self.next() {
                Some(Expected::Shutdown) => Ok(()),
                _ => Err(self.refuse("shutdown".to_owned())),
            }
        })
    }
}

struct FakeCommand {
    exit: watch::Receiver<Option<Exit>>,
    populated: watch::Receiver<bool>,
    killed: watch::Sender<bool>,
    proof: watch::Receiver<Option<Result<Killed, ControlLost>>>,
}

impl Command for FakeCommand {
    fn ended(&self) -> Pending<'_, Exit> {
        Box::pin(async move {
            let mut exit = self.exit.clone();
            exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone()).unwrap_or(Exit::SandboxEnded)
        })
    }

    fn kill(&self) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move {
            self.killed.send_replace(true);
            let mut proof = self.proof.clone();
            let proof = proof.wait_for(Option::is_some).await.unwrap();
            proof.clone().unwrap()
        })
    }

    fn is_populated(&self) -> bool {
        *self.populated.borrow()
    }

    fn lost_to_memory(&self) -> u64 {
        0
    }

    fn population(&self) -> Option<usize> {
        Some(usize::from(*self.populated.borrow()))
    }
}

/// A stream whose reader is at fault.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        panic!("as the test wants it");
    }
}

fn script() -> (Started, Script) {
    let (stdin, script_stdin) = duplex(PIPE);
    let (stdout, script_stdout) = duplex(PIPE);
    let (stderr, script_stderr) = duplex(PIPE);
    let (exit_sender, exit) = watch::channel(None);
    let (populated_sender, populated) = watch::channel(true);
    let (killed, killed_receiver) = watch::channel(false);
    let (proof_sender, proof) = watch::channel(None);
    let started = Started {
        stdin: Some(Box::new(stdin)),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        command: Box::new(FakeCommand { exit, populated, killed, proof }),
    };
    let script = Script {
        stdin: script_stdin,
        stdout: script_stdout,
        stderr: script_stderr,
        exit: exit_sender,
        populated: populated_sender,
        killed: killed_receiver,
        proof: proof_sender,
    };
    (started, script)
}

const PIPE: usize = 64 << 10;
