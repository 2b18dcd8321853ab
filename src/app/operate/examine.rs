//! What this host can isolate, found out by doing it with a tenant that is made for it and removed again.

pub(super) mod egress;

use std::os::fd::OwnedFd;
use std::time::Duration;

use kit::Tenant;
use sandbox::Sandbox;
use sandbox::backend::{
    CommandSpec, Direct, DiskQuota, Ends, Leftovers, Pile, PileState, Proof, Provision, Shell, Streams, UidMap,
};
use sandbox::settings::{Egress, Size, TenantSettings};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;

use crate::admin::words::Check;

/// Tries everything, one after the other.
pub(super) async fn examine(sandbox: &Sandbox) -> Vec<Check> {
    let mut checks = promised(sandbox);
    let trial = match sandbox.trial().await {
        Ok(trial) => trial,
        Err(fault) => {
            checks.push(Check::fail("isolation", kit::chain(&fault), "see what is refused above"));
            return checks;
        }
    };
    let [tenant, _] = trial.tenants();
    checks.extend(with(trial.sandbox(), tenant).await);
    if let Err(fault) = trial.end().await {
        checks.push(Check::fail("removal", kit::chain(&fault), "run this again, which begins with that"));
    }
    checks
}

/// Tries what a tenant is for.
async fn with(sandbox: &Sandbox, tenant: &Tenant) -> Vec<Check> {
    // The pile of all would outlive the tenant, and what the operator decided for all is not what is tried here.
    let settings = TenantSettings {
        disk: Some(Size::new(SMALL_DISK)),
        egress: Some(Egress::None),
        shared_pile: Some(false),
        ..TenantSettings::default()
    };
    let settings = possible(sandbox, settings);
    let spec = Provision { pile: Pile::IfEnforceable, settings, overcommit: true };
    let made = match sandbox.provision(tenant, spec).await {
        Ok(made) => made,
        Err(fault) => return vec![Check::fail("isolation", kit::chain(&fault), "see what is refused above")],
    };
    let mut checks = begun(sandbox.assurances().uid_map, made.pile);
    // A jail and a machine confine by other means, of which the kernel inside says nothing.
    if matches!(sandbox.assurances().uid_map, UidMap::Range | UidMap::Single) {
        checks.push(confinement(sandbox, tenant).await);
        checks.push(network(sandbox, tenant).await);
        checks.push(egress::check(sandbox, tenant).await);
    }
    // Where nothing is promised, ending what does not want to end would only lose control of it.
    if sandbox.assurances().proof != Proof::None {
        checks.push(death(sandbox, tenant).await);
    }
    checks
}

/// Without what the backend here cannot keep; and of a size with which a machine boots.
pub(super) fn possible(sandbox: &Sandbox, settings: TenantSettings) -> TenantSettings {
    match sandbox.assurances().uid_map {
        UidMap::Range | UidMap::Single | UidMap::Jail => sandbox.keepable(settings),
        UidMap::Machine => {
            let (memory, cpu_percent) = (Some(Size::new(MACHINE_MEMORY)), Some(100));
            TenantSettings { memory, cpu_percent, ..TenantSettings::default() }
        }
    }
}

/// What making a sandbox has shown. Its first process tries to break out on Linux alone; elsewhere nothing was attacked.
fn begun(kind: UidMap, pile: PileState) -> Vec<Check> {
    let untried = |id: &str| Check::untried(id, "nothing was attacked from inside", "playground doctor --smoke");
    let machines = || {
        let fix = "keep piles that have to be append-only with --backend jail, or on Linux as root";
        Check::warn("append-only", "nothing keeps a tenant from overwriting its pile in a machine", fix)
    };
    match (kind, pile) {
        (UidMap::Range | UidMap::Single, pile) => vec![
            Check::ok("isolation", "a sandbox starts, and the attacks of its self-test fail from inside"),
            match pile {
                PileState::Enforced => Check::ok("append-only", "a pile withstood being overwritten from inside"),
                PileState::Unenforced | PileState::None => Check::warn(
                    "append-only",
                    "piles cannot be kept from being overwritten here",
                    "run the service as root, with its state on ext4, xfs or btrfs",
                ),
            },
        ],
        (UidMap::Jail, _) => {
            vec![Check::ok("start", "a jail is made and starts"), untried("isolation"), untried("append-only")]
        }
        (UidMap::Machine, _) => {
            vec![Check::ok("start", "a machine is made and starts"), untried("isolation"), machines()]
        }
    }
}

/// What the backend has found when it was opened.
fn promised(sandbox: &Sandbox) -> Vec<Check> {
    let found = sandbox.assurances();
    let mut checks = vec![
        match found.uid_map {
            UidMap::Range => Check::ok("user-ids", "each tenant has a range of user ids of its own"),
            UidMap::Jail => Check::ok("user-ids", "a jail keeps a tenant's root in, with the host's own user ids"),
            UidMap::Machine => Check::ok("user-ids", "each tenant has a machine with user ids of its own"),
            UidMap::Single => Check::warn(
                "user-ids",
                "all tenants have the one user id of this service",
                "run the service as root, which gives each tenant ids of its own",
            ),
        },
        match found.disk_quota {
            DiskQuota::Hard => Check::ok("disk-quota", "the kernel bounds a tenant's files"),
            DiskQuota::Soft => Check::warn(
                "disk-quota",
                "a tenant's files are counted, and it is stopped when they are too many",
                "run the service as root, with mkfs.ext4 and loop devices, for a bound that the kernel holds",
            ),
            DiskQuota::None => {
                let fix = match found.uid_map {
                    UidMap::Jail => "say a size with --jail-clone-refquota",
                    UidMap::Range | UidMap::Single | UidMap::Machine => "run the service as root",
                };
                Check::fail("disk-quota", "nothing bounds a tenant's files", fix)
            }
        },
        match (found.proof, found.leftovers) {
            (Proof::Cgroup, _) => Check::ok("proof", "an emptied cgroup proves that a command is dead"),
            (Proof::PidNamespace, Leftovers::Visible | Leftovers::Awaited) => {
                Check::ok("proof", "a reaped pid namespace proves that a command is dead")
            }
            (Proof::PidNamespace, Leftovers::Hidden) => Check::warn(
                "proof",
                "a reaped pid namespace proves that a command is dead; its background is hidden from later commands",
                "run the service where it may make cgroups: as root, or with Delegate=yes in its unit",
            ),
            (Proof::Reaper, _) => {
                Check::ok("proof", "a wrapper that adopts all that a command leaves proves that it is dead")
            }
            (Proof::None, _) => Check::warn(
                "proof",
                "nothing proves that a command is dead, so that commands in the background are refused",
                match found.uid_map {
                    UidMap::Machine => {
                        "lima has no such proof; jails have one for root of their host, and Linux has one"
                    }
                    UidMap::Range | UidMap::Single | UidMap::Jail => {
                        "run the service as root on the FreeBSD host itself"
                    }
                },
            ),
        },
    ];
    if found.uid_map == UidMap::Machine {
        checks.push(Check::warn(
            "network",
            "a machine reaches all that this host reaches, by Lima's own network this host's loopback included",
            "let nothing listen here, or near here, that asks nobody who they are; or serve from a host of its own",
        ));
    }
    checks.extend(found.limits.iter().map(|(name, holder)| {
        let id = format!("limit-{}", name.replace(' ', "-"));
        let what = format!("{name}: {holder}");
        // A bound on each process is all that there is for files; of the rest it is the weaker one.
        match found.uid_map {
            UidMap::Machine => Check::ok(id, what),
            UidMap::Jail if holder.starts_with("rctl") => Check::ok(id, what),
            UidMap::Jail => Check::warn(
                id,
                what,
                "set kern.racct.enable=1 in the host's /boot/loader.conf, start it again, and then the service",
            ),
            UidMap::Range | UidMap::Single
                if *name == "open files" || *name == "file size" || holder.contains("cgroup") =>
            {
                Check::ok(id, what)
            }
            UidMap::Range | UidMap::Single => Check::warn(
                id,
                what,
                "run the service where it may make cgroups: as root, or with Delegate=yes in its unit",
            ),
        }
    }));
    checks
}

/// What the kernel says of a command's own rights.
async fn confinement(sandbox: &Sandbox, tenant: &Tenant) -> Check {
    const FIX: &str = "use a kernel with seccomp filters";
    let text = match output(sandbox, tenant, "cat /proc/self/status").await {
        Ok(text) => text,
        Err(why) => return Check::fail("confinement", why, FIX),
    };
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
    let none = |name: &str| !field(name).is_empty() && field(name).chars().all(|digit| digit == '0');
    if field("Seccomp:") == "2" && field("NoNewPrivs:") == "1" && none("CapEff:") && none("CapPrm:") && none("CapBnd:")
    {
        return Check::ok("confinement", "a command has a seccomp filter, no capability and no way to get one");
    }
    let found =
        ["Seccomp:", "NoNewPrivs:", "CapEff:", "CapBnd:"].map(|name| format!("{name} {}", field(name))).join(", ");
    Check::fail("confinement", format!("a command has more rights than it should: {found}"), FIX)
}

/// What a command sees of networks.
async fn network(sandbox: &Sandbox, tenant: &Tenant) -> Check {
    match output(sandbox, tenant, "tail -n +3 /proc/net/dev | cut -d: -f1").await {
        Ok(text) if text.trim() == "lo" => {
            let egress = sandbox.common().egress.clone().unwrap_or_default();
            Check::ok("network", format!("a command has no network but its own loopback; egress for all is {egress}"))
        }
        Ok(text) => {
            let found = text.split_whitespace().collect::<Vec<_>>().join(", ");
            Check::fail("network", format!("a command sees {found}"), "use a kernel with network namespaces")
        }
        Err(why) => Check::fail("network", why, "see what is refused above"),
    }
}

/// Ends a tree that does not want to end, and sees it dead.
async fn death(sandbox: &Sandbox, tenant: &Tenant) -> Check {
    const FIX: &str = "do not serve tenants on this host";
    let Direct { ends, command } = match start(sandbox, tenant, TREE).await {
        Ok(started) => started,
        Err(why) => return Check::fail("death", why, FIX),
    };
    let Ends::Pipes { stdout, .. } = ends else { return Check::fail("death", "there are no pipes", FIX) };
    let up = async {
        let mut line = String::new();
        BufReader::new(Receiver::from_owned_fd(stdout)?).read_line(&mut line).await.map(|_| line)
    };
    let up = tokio::time::timeout(PATIENCE, up).await;
    let ended = sandbox.end(&*command).await;
    match (up, ended) {
        (_, Err(fault)) => Check::fail("death", kit::chain(&fault), FIX),
        (Ok(Ok(line)), Ok(())) if line == "up\n" && !command.is_populated() => {
            Check::ok("death", "a tree with its own sessions that ignores signals was ended, and is proven dead")
        }
        (Ok(Ok(_)), Ok(())) => Check::fail("death", "a tree that was ended is alive", FIX),
        (Ok(Err(_)) | Err(_), Ok(())) => Check::fail("death", "a command does not begin in time", FIX),
    }
}

pub(super) async fn output(sandbox: &Sandbox, tenant: &Tenant, text: &str) -> Result<String, String> {
    let Direct { ends, command } = start(sandbox, tenant, text).await?;
    let Ends::Pipes { stdout, .. } = ends else { return Err("there are no pipes".to_owned()) };
    let read = tokio::time::timeout(PATIENCE, whole(stdout)).await;
    // Where nothing proves that a command is dead, its end would be that of all that its tenant has: a boot for each.
    let is_over = sandbox.assurances().proof == Proof::None
        && read.is_ok()
        && tokio::time::timeout(PATIENCE, command.ended()).await.is_ok();
    if !is_over {
        sandbox.end(&*command).await.map_err(|fault| kit::chain(&fault))?;
    }
    match read {
        Ok(read) => read.map_err(|fault| fault.to_string()),
        Err(_) => Err(format!("a command did not end within {} s", PATIENCE.as_secs())),
    }
}

async fn whole(stdout: OwnedFd) -> std::io::Result<String> {
    let mut text = String::new();
    Receiver::from_owned_fd(stdout)?.take(MOST_BYTES).read_to_string(&mut text).await?;
    Ok(text)
}

pub(super) async fn start(sandbox: &Sandbox, tenant: &Tenant, text: &str) -> Result<Direct, String> {
    let command = CommandSpec { command: text.to_owned(), shell: Shell::Clean, cwd: None, stdin: false, limit: None };
    sandbox.run(tenant, command, Streams::Pipes).await.map_err(|fault| kit::chain(&fault))
}

const TREE: &str =
    "trap '' TERM INT HUP; (setsid sh -c 'sleep 1000 & sleep 1000' &) ; (sleep 1000 &) ; echo up; sleep 1000";

/// Enough for a few small files, and soon made.
const SMALL_DISK: u64 = 32 << 20;

/// Two of them are to fit beside what a small host does otherwise.
const MACHINE_MEMORY: u64 = 2 << 30;

/// A busy host is slow; past this, something is stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

const MOST_BYTES: u64 = 64 << 10;
