//! Getting out, as an ordinary command and as the root of the tenant's namespaces without a filter.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;

use kit::Tenant;
use sandbox::backend::{AppendOnly, Assurances, Backend, Config, Exit, Pile, UidMap};

use crate::skip::skipped;
use crate::world::{World, at, world, world_as_guest_root, world_as_guest_root_with, world_with};

const ESCAPE: &str = include_str!("guest/escape.py");
const PILE: &str = include_str!("guest/pile.py");
const KEEPER: &str = include_str!("guest/keeper.py");

/// What the host has that a tenant must not reach, each shown to be reachable from the host.
struct Host {
    described: String,
    _folder: tempfile::TempDir,
    _listeners: (TcpListener, UnixListener, UnixListener),
    /// Keeps what has no name among the files; ends with its standard input.
    _keeper: std::process::Child,
}

impl Host {
    fn prepare(world: &World, other: &Tenant) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let canary = folder.path().join("canary");
        let secret = world.state.path().join("secret");
        let others = world.state.path().join("tenants").join(other.as_str());
        // Where its files lie on a disk, its folder holds none of them.
        let theirs = if others.join("home").exists() { others.join("home/theirs") } else { others.join("theirs") };
        for file in [&canary, &secret, &theirs] {
            std::fs::write(file, "canary").unwrap();
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
            assert_eq!(std::fs::read_to_string(file).unwrap(), "canary", "positive control");
        }
        let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        TcpStream::connect(("127.0.0.1", port)).expect("positive control");
        let name = format!("playground-test-{port}");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        UnixStream::connect_addr(&address).expect("positive control");
        let socket = folder.path().join("socket");
        let named = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
        UnixStream::connect(&socket).expect("positive control");
        let mut root: Vec<String> = std::fs::read_dir("/")
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        root.sort();
        let (keeper, kept) = keep();
        let described = serde_json::json!({
            "shared memory": kept["shared memory"],
            "queue": kept["queue"],
            "key": kept["key"],
            "files": [canary, secret, theirs],
            "root": root,
            "pid": std::process::id(),
            "ports": [port],
            "addresses": addresses(port),
            "abstract": name,
            "socket": socket,
        });
        Self { described: described.to_string(), _folder: folder, _listeners: (tcp, hidden, named), _keeper: keeper }
    }
}

/// Makes what the host's processes share without files, in a process that has shown to itself that it is there.
fn keep() -> (std::process::Child, serde_json::Value) {
    #[expect(clippy::disallowed_methods, reason = "what it makes has no safe wrapper here")]
    let mut keeper = std::process::Command::new("/usr/bin/python3");
    let keeper = keeper.args(["-c", KEEPER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = keeper.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    (keeper, serde_json::from_str(&said).unwrap())
}

/// A folder of the operator's with a program that would make whoever runs it another user.
fn faculties() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy("/usr/bin/id", folder.path().join("suid")).unwrap();
    std::fs::set_permissions(folder.path().join("suid"), std::fs::Permissions::from_mode(0o6755)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// The host's own addresses beside the loopback, each shown to answer.
pub(crate) fn addresses(port: u16) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut lines = table.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let local = lines.peek().is_some_and(|next| next.contains("/32 host LOCAL"));
        if let (true, Some((_, address))) = (local, line.split_once("-- ")) {
            let address = address.trim().to_owned();
            if !address.starts_with("127.")
                && !found.contains(&address)
                && TcpStream::connect((address.as_str(), port)).is_ok()
            {
                found.push(address);
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_reach_the_host() {
    let faculties = faculties();
    let Some(world) = world_with("escape", |config| config.common.faculties = Some(faculties.path().to_owned())) else {
        return;
    };
    let me = world.make("me").await;
    let other = world.make("other").await;
    let host = Host::prepare(&world, &other);
    attack(&world, &me, "escape", ESCAPE, &format!("user '{}'", host.described)).await;
    assert_eq!(world.says(&me, "echo unharmed").await, "unharmed");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_can_the_root_of_the_tenants_namespaces_without_a_filter() {
    let faculties = faculties();
    let give = |config: &mut Config| config.common.faculties = Some(faculties.path().to_owned());
    let Some(world) = world_as_guest_root_with("escape as root", give) else { return };
    let me = world.make("me").await;
    let other = world.make("other").await;
    let host = Host::prepare(&world, &other);
    attack(&world, &me, "escape as root", ESCAPE, &format!("root '{}'", host.described)).await;
}

/// The way out that egress is leads through the proxy alone: everything else is as closed as without it.
#[tokio::test(flavor = "multi_thread")]
async fn egress_opens_no_other_way_to_the_host() {
    for (role, opened) in [("user", world("escape with egress")), ("root", world_as_guest_root("as root with egress"))]
    {
        let Some(world) = opened else { return };
        let me = world.make_with_egress("me", "open").await;
        let other = world.make("other").await;
        let host = Host::prepare(&world, &other);
        attack(&world, &me, "escape with egress", ESCAPE, &format!("{role} '{}'", host.described)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pile_can_be_appended_to_and_nothing_else() {
    let Some(world) = world("pile") else { return };
    pile(&world, "pile").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_can_the_root_of_the_tenants_namespaces_change_the_pile() {
    let Some(world) = world_as_guest_root("pile as root") else { return };
    pile(&world, "pile as root").await;
}

async fn pile(world: &World, name: &str) {
    if world.backend.assurances().append_only != AppendOnly::Enforced {
        // Not a lack of this host but of this user: what it is told then has a test of its own.
        return;
    }
    let me = world.make_with("me", Pile::Enforced).await;
    let path = world.state.path().join("tenants/me/pile/self.pile");
    assert_eq!(std::fs::read(&path).unwrap(), b"", "the self-test leaves nothing in it");
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2, "nor beside it and the key");
    world.says(&me, "echo head >> $PILE").await;
    attack(world, &me, name, PILE, "").await;
    let refused = world.run(&me, ": > /pile/self.pile").await;
    assert_ne!(refused.exit, Exit::Code(0));
    assert!(world.backend.write_file(&me, &at("/pile/self.pile"), vec![]).await.is_err());
    assert!(std::fs::read(&path).unwrap().starts_with(b"head\nline\n"));
}

#[test]
fn what_is_promised_is_what_this_user_can_have() {
    let Some(world) = world("assurances") else { return };
    let Assurances { uid_map, append_only, .. } = world.backend.assurances();
    let root = rustix::process::geteuid().is_root();
    assert_eq!(*uid_map, if root { UidMap::Range } else { UidMap::Single });
    if !root {
        assert_eq!(*append_only, AppendOnly::None);
    }
}

/// Runs a script inside and demands that no attempt of it failed to fail.
async fn attack(world: &World, tenant: &Tenant, name: &str, script: &str, arguments: &str) {
    if !Path::new("/usr/bin/python3").exists() {
        skipped(name, "the attack is written in Python, and this host has no /usr/bin/python3");
        return;
    }
    world.backend.write_file(tenant, &at("attack.py"), script.as_bytes().to_vec()).await.unwrap();
    let done = world.run(tenant, &format!("python3 attack.py {arguments}")).await;
    let attempts = done.stdout.lines().filter(|line| line.starts_with("ok")).count();
    let failures: Vec<&str> = done.stdout.lines().filter(|line| !line.starts_with("ok")).collect();
    assert!(failures.is_empty() && done.exit == Exit::Code(0), "{failures:#?}\n{}", done.stderr);
    assert!(attempts >= 30, "only {attempts} attempts were made");
    // Not by a macro, whose output the harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr().lock(), "REFUSED {name}: {attempts} attempts");
}
