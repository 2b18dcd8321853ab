//! What can be seen of the host from this side.

use std::path::Path;

use rustix::fs::statvfs;
use sandbox::backend::Kind;
use sandbox::backend::jail::Reach;
use sandbox::settings::{Settings, Size};

use crate::admin::words::Check;
use crate::cli::failure::Failure;
use crate::cli::store;
use crate::identity::store::Ledger;
use crate::state::StateDir;

pub(super) async fn checks(
    state: &StateDir,
    ledger: Result<Ledger, Failure>,
    kind: Result<Kind, Failure>,
) -> Vec<Check> {
    let mut checks = vec![
        room(state.path()),
        match Settings::load(&state.sandbox()) {
            Ok(_) => Check::ok("settings", "settings.json can be used, or there is none"),
            Err(fault) => Check::fail("settings", fault.to_string(), "correct the file"),
        },
        match async { store::listed(&ledger?).await }.await {
            Ok(tokens) => Check::ok("credentials", format!("the store can be read and has {} tokens", tokens.len())),
            Err(fault) => Check::fail("credentials", fault.to_string(), "correct the file's content, owner or mode"),
        },
    ];
    // Which one cannot be told is said by who opens it.
    if let Ok(kind) = &kind {
        checks.extend(of(kind));
    }
    checks.push(program("tar", "exports and imports", "install tar", None));
    checks
}

/// What a backend needs of this host.
fn of(kind: &Kind) -> Vec<Check> {
    match kind {
        Kind::Linux if std::env::consts::OS == "linux" => {
            let mut checks = user_namespaces();
            checks.push(program("mkfs.ext4", "a hard bound on tenants' files", "install e2fsprogs", None));
            checks
        }
        Kind::Linux => Vec::new(),
        Kind::Jail(settings) => {
            let path = settings.surroundings.get("PATH");
            match settings.reach {
                Reach::Ssh(_) => vec![program("ssh", "the host of the jails", "install OpenSSH's client", path)],
                Reach::Unsaid | Reach::Local => {
                    let fix = "name the FreeBSD host that has the jails with --jail-host, or run this there";
                    ["zfs", "jail", "jexec"].map(|name| program(name, "jails of this host", fix, path)).to_vec()
                }
            }
        }
        Kind::Lima(settings) => {
            let path = settings.surroundings.get("PATH");
            vec![program("limactl", "machines", "install Lima, or add its folder to PATH", path)]
        }
    }
}

fn room(path: &Path) -> Check {
    const FIX: &str = "make room on that file system, or move the state";
    let found = match statvfs(path) {
        Ok(found) => found,
        Err(fault) => return Check::fail("disk-room", fault.to_string(), FIX),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let what = format!("{} are free for the state", Size::new(free));
    if free < LEAST_ROOM {
        Check::fail("disk-room", what, FIX)
    } else if free < LITTLE_ROOM {
        Check::warn("disk-room", what, FIX)
    } else {
        Check::ok("disk-room", what)
    }
}

/// The settings of the kernel that stand in the way of user namespaces.
fn user_namespaces() -> Vec<Check> {
    let setting = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let root = rustix::process::geteuid().is_root();
    if setting("/proc/sys/user/max_user_namespaces") == "0" {
        let fix = "sysctl user.max_user_namespaces=15000";
        return vec![Check::fail("user-namespaces", "they are switched off for everyone", fix)];
    }
    if !root && setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        let fix = "sysctl kernel.unprivileged_userns_clone=1, or run the service as root";
        return vec![Check::fail("user-namespaces", "they are switched off for all but root", fix)];
    }
    if !root && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        let fix = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run the service as root";
        return vec![Check::warn("user-namespaces", "AppArmor bounds them for all but root", fix)];
    }
    vec![Check::ok("user-namespaces", "no setting of the kernel stands in their way")]
}

/// Looks in `path` where the program is found by that, else where programs lie.
fn program(name: &str, purpose: &str, fix: &str, path: Option<&str>) -> Check {
    let places: Vec<_> = path.map_or_else(|| PLACES.to_vec(), |path| path.split(':').collect());
    match places.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file()) {
        Some(path) => Check::ok(name, format!("{} is there, for {purpose}", path.display())),
        None => Check::warn(name, format!("{name} is not there, which is needed for {purpose}"), fix),
    }
}

const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Below this a single tenant cannot work.
const LEAST_ROOM: u64 = 64 << 20;

/// Below this a few tenants are soon in each other's way.
const LITTLE_ROOM: u64 = 1 << 30;
