//! What a service manager sees and gives: messages at its socket, listening sockets as descriptors from 3 on, secrets as
//! files. The manager is the test.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Client;
use crate::host::isolates;
use crate::http::post;
use crate::process::{PATIENCE, Service, family_of, playground, program, run, text};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A service with native workers alone, one of whom is listed and not there.
struct Native {
    place: tempfile::TempDir,
}

impl Native {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        std::fs::write(place.path().join("worker.token"), TOKEN).expect("written");
        let native = Self { place };
        native.list("worker.token");
        native
    }

    fn list(&self, token_file: &str) {
        let text =
            format!(r#"{{"workers":[{{"tenant":"alice","address":"127.0.0.1:9","token_file":"{token_file}"}}]}}"#);
        std::fs::write(self.place.path().join("workers.json"), text).expect("written");
    }

    fn serve(&self) -> Command {
        let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--faculties-workers"]);
        command.arg(self.place.path().join("workers.json"));
        command.arg("--state").arg(self.place.path().join("state")).stdout(Stdio::null());
        command
    }
}

/// The socket of a manager.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn at(place: &Path) -> Self {
        let path = place.join("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        Self { socket, path }
    }

    fn starts(&self, mut command: Command) -> Service {
        command.env("NOTIFY_SOCKET", &self.path);
        Service::start(command)
    }

    /// The next message, as its variables.
    fn hears_within(&self, patience: Duration) -> Option<HashMap<String, String>> {
        self.socket.set_read_timeout(Some(patience)).expect("set");
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).ok()?;
        let pairs = text(&message[..length]);
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(pairs.lines().map(|line| pair(line).expect("a variable")).collect())
    }

    /// The next message that has this variable.
    fn hears(&self, name: &str) -> HashMap<String, String> {
        loop {
            let message = self.hears_within(PATIENCE).unwrap_or_else(|| panic!("no {name}"));
            if message.contains_key(name) {
                return message;
            }
        }
    }

    /// Waits until nothing was said for longer than the watchdog has patience.
    fn hears_nothing_more(&self, why: &str) {
        let deadline = kit::clock::now() + PATIENCE;
        while let Some(message) = self.hears_within(3 * WATCHDOG) {
            assert!(kit::clock::now() < deadline, "{why}: {message:?}");
        }
    }
}

/// The command as a manager starts it that hands these sockets in.
fn handing(sockets: Vec<OwnedFd>, names: &str, command: &Command) -> Command {
    let count = sockets.len();
    let mut shell = program("/bin/sh");
    // The services of our units keep what they make to themselves.
    let take =
        "umask 0077; exec 3<&0 4<&1 </dev/null >/dev/null; [ $LISTEN_FDS = 2 ] || exec 4<&-; LISTEN_PID=$$ exec \"$@\"";
    shell.args(["-c", take, "sh"]).arg(command.get_program()).args(command.get_args());
    shell.env("LISTEN_FDS", count.to_string()).env("LISTEN_FDNAMES", names);
    for (name, value) in command.get_envs() {
        shell.env(name, value.expect("set"));
    }
    let mut sockets = sockets.into_iter();
    shell.stdin(Stdio::from(sockets.next().expect("a socket")));
    shell.stdout(sockets.next().map_or_else(Stdio::null, Stdio::from));
    shell
}

/// How it ends, and what it logs until then. Its standard output may be a socket.
fn left(command: Command) -> (Option<i32>, String) {
    let mut service = Service::start(command);
    let code = service.ended_within(PATIENCE).code();
    (code, service.rest())
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// No child of a service has a variable of the manager's, or any.
fn have_no_environment(parent: u32, fewest: usize) {
    let family = family_of(parent);
    assert!(family.len() >= fewest, "{}", family.len());
    for child in family {
        let environment = std::fs::read(format!("/proc/{}/environ", child.id)).unwrap_or_default();
        let environment = text(&environment);
        assert!(
            ["NOTIFY_SOCKET", "WATCHDOG", "LISTEN_", "CREDENTIALS_DIRECTORY"]
                .iter()
                .all(|it| !environment.contains(it)),
            "{environment}"
        );
    }
}

#[test]
fn a_manager_hears_when_a_service_is_ready_reads_its_files_again_and_stops() {
    let native = Native::new();
    let manager = Manager::at(native.place.path());
    let mut service = manager.starts(native.serve());
    let ready = manager.hears("READY");
    assert_eq!(ready["READY"], "1");
    // Before the line for a person it may be said, but not before the service answers.
    let address = service.ready();
    assert_eq!(post(address, "/mcp", None, &[], "{}").status, 401);
    assert_eq!(ready["STATUS"], format!("http://{address} (1 native worker)"));
    have_no_environment(service.pid(), 1);

    service.signal(Signal::HUP);
    let reloading = manager.hears("RELOADING");
    assert_eq!(reloading["RELOADING"], "1");
    assert!(reloading["MONOTONIC_USEC"].parse::<u64>().expect("a time") > 0);
    assert_eq!(manager.hears("READY"), ready);

    // A reload that fails is over too, and its state says so.
    std::fs::write(native.place.path().join("workers.json"), "{").expect("written");
    service.signal(Signal::HUP);
    manager.hears("RELOADING");
    assert!(manager.hears("READY")["STATUS"].ends_with("; the last reload failed, as the log says"));

    service.child("__edge").kill();
    let status = manager.hears("STATUS");
    assert!(
        status["STATUS"].contains("the edge is being started again") && !status.contains_key("READY"),
        "{status:?}"
    );
    let status = manager.hears("STATUS");
    assert!(!status["STATUS"].contains("being started"), "{status:?}");

    service.signal(Signal::TERM);
    let stopping = manager.hears("STOPPING");
    assert!(stopping["STATUS"].starts_with("stopping: "), "{stopping:?}");
    assert_eq!(service.ended_within(PATIENCE).code(), Some(0));
}

#[test]
fn a_service_that_cannot_start_is_never_ready() {
    let native = Native::new();
    native.list("no.token");
    let manager = Manager::at(native.place.path());
    let mut service = manager.starts(native.serve());
    assert_eq!(service.ended_within(PATIENCE).code(), Some(10), "{}", service.rest());
    while let Some(message) = manager.hears_within(Duration::from_millis(1)) {
        assert!(!message.contains_key("READY"), "{message:?}");
    }
}

/// A watchdog with so much patience.
fn watched(command: &mut Command) {
    command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
}

const WATCHDOG: Duration = Duration::from_millis(300);

#[test]
fn the_watchdog_is_told_only_while_each_half_answers() {
    if !isolates("a watchdog of both halves") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let manager = Manager::at(place.path());
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--state"]);
    command.arg(&state);
    watched(&mut command);
    let mut service = manager.starts(command);
    manager.hears("READY");
    for half in ["__edge", "__worker"] {
        manager.hears("WATCHDOG");
        manager.hears("WATCHDOG");
        let held = service.child(half);
        signal(held.id, Signal::STOP);
        service.line_with("a half does not answer");
        manager.hears_nothing_more(half);
        signal(held.id, Signal::CONT);
        manager.hears("WATCHDOG");
    }
    // One that falls is started again, and the manager has no reason to end the rest.
    service.child("__worker").kill();
    manager.hears("STATUS");
    manager.hears("WATCHDOG");
    service.stop();
}

fn signal(id: u32, signal: Signal) {
    let id = rustix::process::Pid::from_raw(i32::try_from(id).expect("an id")).expect("not zero");
    rustix::process::kill_process(id, signal).expect("signalled");
}

#[test]
fn both_halves_alone_serve_on_the_sockets_that_they_are_handed_and_are_watched() {
    if !isolates("halves on sockets of a manager") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).expect("made");
        folder
    };
    let (worker_state, edge_state) = (place.path().join("worker"), place.path().join("edge"));
    let token = Client::mint(&worker_state, "alice");
    let secrets = folder("credentials");
    std::fs::write(secrets.join("sandbox.token"), TOKEN).expect("written");
    let of_worker = Manager::at(&folder("of-worker"));
    let (inner, inner_address) = listener();
    let mut command = playground(["worker", "sandbox", "--token-file", "credential:sandbox.token", "--state"]);
    command.arg(&worker_state).env("CREDENTIALS_DIRECTORY", &secrets);
    watched(&mut command);
    let mut worker = of_worker.starts(handing(vec![inner.into()], "playground-sandbox.socket", &command));
    let ready = of_worker.hears("READY");
    assert_eq!(ready["STATUS"], format!("http://{inner_address} (sandbox worker)"));

    let of_edge = Manager::at(&folder("of-edge"));
    let (outer, outer_address) = listener();
    // What was said is not bound: that address is taken.
    let (_taken, taken) = listener();
    let mut command = playground(["serve", "--only", "edge", "--worker-token-file", "credential:sandbox.token"]);
    command.args(["--bind", &taken.to_string(), "--worker", &inner_address.to_string(), "--state"]);
    command.arg(&edge_state).arg("--tokens").arg(worker_state.join("tokens.json"));
    command.env("CREDENTIALS_DIRECTORY", &secrets);
    watched(&mut command);
    let mut edge = of_edge.starts(handing(vec![outer.into()], "clients", &command));
    assert!(of_edge.hears("READY")["STATUS"].starts_with(&format!("http://{outer_address} ")));

    let client = Client::open(outer_address, &token);
    let handle = client.handle();
    let variables = client.exec(&handle, "env");
    for foreign in ["NOTIFY_SOCKET", "WATCHDOG", "LISTEN_", "CREDENTIALS_DIRECTORY"] {
        assert!(!variables.contains(foreign), "{variables}");
    }
    have_no_environment(edge.pid(), 1);
    have_no_environment(worker.pid(), 1);
    for manager in [&of_edge, &of_worker] {
        manager.hears("WATCHDOG");
        manager.hears("WATCHDOG");
    }
    let half = edge.child("__edge");
    signal(half.id, Signal::STOP);
    edge.line_with("a half does not answer");
    of_edge.hears_nothing_more("the edge is held");
    signal(half.id, Signal::CONT);
    of_edge.hears("WATCHDOG");
    for (service, manager) in [(&mut edge, &of_edge), (&mut worker, &of_worker)] {
        service.signal(Signal::TERM);
        manager.hears("STOPPING");
        assert_eq!(service.ended_within(PATIENCE).code(), Some(0), "{}", service.rest());
    }
    crate::host::remove(&worker_state, "alice");
}

#[test]
fn a_socket_is_told_by_its_name_or_its_place() {
    let native = Native::new();
    let wanted = "`redirect_bind` needs `hosts`";
    // The second is for redirects, which want TLS: by its place, and by its name at any place.
    for (count, names) in [(2, ""), (2, "a.socket:a.socket"), (1, "redirect"), (2, "redirect:clients")] {
        let sockets = (0..count).map(|_| listener().0.into()).collect();
        let (code, log) = left(handing(sockets, names, &native.serve()));
        assert_eq!(code, Some(10), "{names}: {log}");
        assert!(log.contains(wanted), "{names}: {log}");
    }
    for names in ["", "unknown", "playground-edge.socket", "clients"] {
        let (socket, address) = listener();
        let mut service = Service::start(handing(vec![socket.into()], names, &native.serve()));
        assert_eq!(service.ready(), address, "{names}");
        service.stop();
    }
    // Without a socket of ours the variables of somebody else mean nothing.
    let mut command = native.serve();
    command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let mut service = Service::start(command);
    service.ready();
    service.stop();
}

#[test]
fn what_cannot_be_listened_on_is_a_wrong_configuration() {
    let native = Native::new();
    let connected = {
        let (listener, address) = listener();
        let connected = TcpStream::connect(address).expect("connected");
        drop(listener);
        connected
    };
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let unix = std::os::unix::net::UnixListener::bind(native.place.path().join("unix")).expect("bound");
    for (sockets, names, told) in [
        (vec![connected.into()], "", "socket 1 that was handed in does not listen"),
        (vec![datagrams.into()], "", "socket 1 that was handed in is no TCP socket"),
        (vec![unix.into()], "", "socket 1 that was handed in is no TCP socket"),
        (vec![listener().0.into()], "worker", "is called `worker`, and nothing here is"),
        (
            vec![listener().0.into(), listener().0.into()],
            "clients:clients",
            "socket 2 that was handed in is one too many",
        ),
    ] {
        let (code, log) = left(handing(sockets, names, &native.serve()));
        assert_eq!(code, Some(10), "{told}: {log}");
        assert!(log.contains(told), "{told}: {log}");
    }
    // A sandbox worker has one, and on loopback.
    let token = native.place.path().join("worker.token");
    let mut worker = playground(["worker", "sandbox", "--state"]);
    worker.arg(native.place.path().join("sandbox")).arg("--token-file").arg(token);
    let everywhere = TcpListener::bind("0.0.0.0:0").expect("bound");
    for (sockets, told) in [
        (vec![everywhere.into()], "is not a loopback address"),
        (vec![listener().0.into(), listener().0.into()], "one too many"),
    ] {
        let (code, log) = left(handing(sockets, "", &worker));
        assert_eq!(code, Some(10), "{told}: {log}");
        assert!(log.contains(told), "{told}: {log}");
    }
    let output = run(worker);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no place to listen"), "{}", text(&output.stderr));
}

#[test]
fn a_secret_can_be_one_that_was_handed_in() {
    let native = Native::new();
    let secrets = native.place.path().join("secrets");
    std::fs::create_dir(&secrets).expect("made");
    native.list("credential:worker_alice");
    // Nothing is handed in; then something else; then a path, which is no name.
    for (folder, told) in [(None, "was not handed in"), (Some(&secrets), "LoadCredential=worker_alice:FILE")] {
        let mut command = native.serve();
        if let Some(folder) = folder {
            command.env("CREDENTIALS_DIRECTORY", folder);
        }
        let output = run(command);
        assert_eq!(output.status.code(), Some(10), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(told), "{}", text(&output.stderr));
    }
    let secret = secrets.join("worker_alice");
    std::fs::write(&secret, TOKEN).expect("written");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o400)).expect("changed");
    let mut command = native.serve();
    command.env("CREDENTIALS_DIRECTORY", &secrets);
    let mut service = Service::start(command);
    service.ready();
    service.stop();

    // The same in a playground.toml, beside paths of its folder.
    let config = native.place.path().join("playground.toml");
    let worker =
        "[[worker]]\ntenant = \"alice\"\naddress = \"127.0.0.1:9\"\ntoken_file = \"credential:worker_alice\"\n";
    std::fs::write(&config, format!("sandbox = false\nstate = \"state\"\n{worker}")).expect("written");
    let mut command = playground(["serve", "--bind", "127.0.0.1:0", "--config"]);
    command.arg(&config).env("CREDENTIALS_DIRECTORY", &secrets);
    let mut service = Service::start(command);
    service.ready();
    service.stop();
    native.list("credential:../secrets/worker_alice");
    let mut command = native.serve();
    command.env("CREDENTIALS_DIRECTORY", &secrets);
    assert_eq!(run(command).status.code(), Some(10));
}

#[test]
fn a_wrong_configuration_leaves_10_in_every_way_to_run() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let token = place.path().join("token");
    std::fs::write(&token, TOKEN).expect("written");
    let config = place.path().join("playground.toml");
    std::fs::write(&config, "bnid = \"127.0.0.1:0\"").expect("written");
    let missing = place.path().join("missing");
    let shown = |path: &Path| path.to_str().expect("text").to_owned();
    let (state, token, config, missing) = (shown(&state), shown(&token), shown(&config), shown(&missing));
    let edge = ["serve", "--only", "edge", "--worker", "127.0.0.1:9", "--bind", "127.0.0.1:0", "--state", &state];
    let worker = ["worker", "sandbox", "--listen", "127.0.0.1:0", "--state", &state];
    let lines: [(&[&str], &[&str]); 6] = [
        (&["serve", "--bind", "127.0.0.1:0", "--state", &state], &["--config", &config]),
        (&["serve", "--bind", "127.0.0.1:0", "--state", &state], &["--workers", &missing]),
        (&edge, &["--worker-token-file", &missing]),
        (&edge, &["--worker-token-file", &token, "--config", &config]),
        (&edge, &["--worker-token-file", "credential:token"]),
        (&worker, &["--token-file", &missing]),
    ];
    for (line, more) in lines {
        let output = run(playground(line.iter().chain(more)));
        assert_eq!(output.status.code(), Some(10), "{line:?} {more:?}: {}", text(&output.stderr));
    }
    // A setting of the sandbox itself, in either place that it is read.
    let settings = place.path().join("state/sandbox/settings.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("made");
    std::fs::write(&settings, "{\"tennants\": {}}").expect("written");
    for line in [
        &["serve", "--bind", "127.0.0.1:0", "--state", &state][..],
        &["worker", "sandbox", "--listen", "127.0.0.1:0", "--state", &state, "--token-file", &token],
    ] {
        let output = run(playground(line));
        assert_eq!(output.status.code(), Some(10), "{line:?}: {}", text(&output.stderr));
    }
}
