//! A backend in a state folder of its own, and short ways to use it.

use std::path::PathBuf;
use std::time::Duration;

use kit::Tenant;
use sandbox::backend::linux::{Door, LinuxBackend};
use sandbox::backend::{
    Backend, BackendError, Command, CommandSpec, Config, Exit, GuestPath, KILL_DEADLINE, Pile, Provision, Shell,
    Started,
};
use sandbox::settings::TenantSettings;
use tokio::io::AsyncReadExt;

pub(crate) struct World {
    pub(crate) backend: LinuxBackend,
    pub(crate) state: tempfile::TempDir,
}

/// What a finished command left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn tenant(name: &str) -> Tenant {
    Tenant::parse_new(name).unwrap()
}

pub(crate) fn config(state: &std::path::Path) -> Config {
    Config {
        kind: sandbox::backend::Kind::Linux,
        state: state.to_owned(),
        program: init_program(),
        init_arguments: Vec::new(),
        kill_deadline: KILL_DEADLINE,
        common: TenantSettings::default(),
        bootstrap_pile: None,
    }
}

/// The program of first processes: the one beside this test, or a copy that an ordinary user can reach.
pub(crate) fn init_program() -> PathBuf {
    std::env::var_os(INIT).map_or_else(|| env!("CARGO_BIN_EXE_sandbox-init").into(), PathBuf::from)
}

/// Names the copy.
pub(crate) const INIT: &str = "PLAYGROUND_TEST_INIT";

/// A world, or `None` where this host forbids isolation; then the test says that it was skipped.
pub(crate) fn world(name: &str) -> Option<World> {
    world_with(name, |_| {})
}

pub(crate) fn world_with(name: &str, change: impl FnOnce(&mut Config)) -> Option<World> {
    opened(name, change, LinuxBackend::open)
}

/// A world whose tenants keep every capability and have no filter.
pub(crate) fn world_as_guest_root(name: &str) -> Option<World> {
    world_as_guest_root_with(name, |_| {})
}

pub(crate) fn world_as_guest_root_with(name: &str, change: impl FnOnce(&mut Config)) -> Option<World> {
    opened(name, change, LinuxBackend::open_for_test_as_guest_root)
}

/// A world some of whose ways are closed or broken.
pub(crate) fn world_through(name: &str, door: Door, change: impl FnOnce(&mut Config)) -> Option<World> {
    opened(name, change, |config| LinuxBackend::open_for_test(config, door))
}

pub(crate) fn opened(
    name: &str,
    change: impl FnOnce(&mut Config),
    open: impl FnOnce(Config) -> Result<LinuxBackend, BackendError>,
) -> Option<World> {
    let state = tempfile::tempdir().unwrap();
    let mut config = config(state.path());
    change(&mut config);
    match open(config) {
        Ok(backend) => Some(World { backend, state }),
        Err(BackendError::NoIsolation(why)) => {
            crate::skip::skipped(name, &why.to_string());
            None
        }
        Err(fault) => panic!("{fault}: {:?}", std::error::Error::source(&fault)),
    }
}

pub(crate) fn spec(command: &str) -> CommandSpec {
    CommandSpec { command: command.to_owned(), shell: Shell::Login, cwd: None, stdin: false, limit: None }
}

pub(crate) fn at(path: &str) -> GuestPath {
    GuestPath { cwd: None, path: path.to_owned() }
}

impl World {
    pub(crate) async fn make(&self, name: &str) -> Tenant {
        self.make_with(name, Pile::None).await
    }

    pub(crate) async fn make_with(&self, name: &str, pile: Pile) -> Tenant {
        let tenant = tenant(name);
        self.backend.provision(&tenant, &Provision::from(pile)).await.unwrap();
        tenant
    }

    pub(crate) async fn start(&self, tenant: &Tenant, command: &str) -> Started {
        self.backend.start(tenant, spec(command)).await.unwrap()
    }

    /// The number, on the host, of a tenant's first process.
    pub(crate) async fn init(&self, tenant: &Tenant) -> i32 {
        let mark = format!("mark-{}-{tenant}", self.state.path().display()).replace('/', "_");
        let spec = CommandSpec { stdin: true, ..spec(&format!(": {mark}; echo up; read line")) };
        let mut started = self.backend.start(tenant, spec).await.unwrap();
        assert_eq!(line(&mut started).await, "up");
        let init = crate::host::first_process_above(&mark);
        drop(started.stdin.take());
        finish(started).await;
        init
    }

    /// Runs a command to its end and the end of its output.
    pub(crate) async fn run(&self, tenant: &Tenant, command: &str) -> Finished {
        finish(self.start(tenant, command).await).await
    }

    /// Standard output of a command that must succeed.
    pub(crate) async fn says(&self, tenant: &Tenant, command: &str) -> String {
        let finished = self.run(tenant, command).await;
        assert_eq!(finished.exit, Exit::Code(0), "{command}: {finished:?}");
        finished.stdout.trim_end().to_owned()
    }
}

pub(crate) async fn finish(mut started: Started) -> Finished {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let all = async {
        let (out, err) = tokio::join!(started.stdout.read_to_end(&mut stdout), started.stderr.read_to_end(&mut stderr));
        out.unwrap();
        err.unwrap();
        started.command.ended().await
    };
    let exit = within(all).await;
    Finished {
        exit,
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Reads one line, as the event that tests wait for.
pub(crate) async fn line(started: &mut Started) -> String {
    let mut line = Vec::new();
    within(async {
        loop {
            match started.stdout.read_u8().await {
                Ok(b'\n') | Err(_) => return,
                Ok(byte) => line.push(byte),
            }
        }
    })
    .await;
    String::from_utf8(line).unwrap()
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("the event did not come within a minute")
}

pub(crate) async fn ended(command: &dyn Command) -> Exit {
    within(command.ended()).await
}

/// Whether programs in Python can be run inside; else the test says that it was skipped.
pub(crate) fn has_python(name: &str) -> bool {
    let found = std::path::Path::new("/usr/bin/python3").exists();
    if !found {
        crate::skip::skipped(name, "the program inside is written in Python, and this host has no /usr/bin/python3");
    }
    found
}
