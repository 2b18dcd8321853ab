//! Finding out what this host allows: by doing it, and by reading the settings that usually stand in the way.

use std::fs;
use std::io;

use rustix::process::geteuid;

use super::Inner;
use super::cgroup::Cgroups;
use super::disk::{self, Nodes};
use super::launch::{NEW_NAMESPACES, Users, launch};
use super::layout::{RANGE, step};
use super::pile;
use crate::backend::{AppendOnly, Assurances, BackendError, Config, DiskQuota, Leftovers, NoIsolation, Proof, UidMap};
use crate::settings::TenantSettings;

/// Whose user ids tenants have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    /// A range of its own for each.
    Range,
    /// The one id of the user who runs the service.
    Single,
}

/// Starts a first process in a world without folders, and ends it again.
pub(super) fn isolation(inner: &Inner) -> Result<(), BackendError> {
    let users = match inner.ids {
        Ids::Single => Users::Single,
        // Any range will do: nothing is written, and the kernel does not care who else uses it.
        Ids::Range => Users::Range(PROBE_RANGE),
    };
    let mut setup = inner.setup("probe", false, &TenantSettings::default().over(&inner.config.common));
    // What the operator gives is no matter of this host's kernel, and is named when a tenant is made or started.
    setup.supplies.clear();
    match launch(&inner.program, users, None, setup, Vec::new(), None) {
        Ok(launched) => {
            drop(launched.socket);
            super::launch::end(&launched.handle);
            Ok(())
        }
        Err(BackendError::Step { step, source }) => Err(explain(&step, &source)),
        Err(fault) => Err(fault),
    }
}

/// Whether tenants can have ranges of user ids here.
pub(super) fn user_ids() -> Result<Ids, BackendError> {
    let map = fs::read_to_string("/proc/self/uid_map").map_err(step("read the user map of this process"))?;
    let mapped: u64 = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    let whole = mapped >= u64::from(u32::MAX);
    match (geteuid().is_root(), has_capabilities()) {
        (true, true) if whole => Ok(Ids::Range),
        // The one id that could be mapped would be the host's root itself.
        (true, _) if whole => Err(BackendError::NoIsolation(NoIsolation {
            what: "root without capabilities".to_owned(),
            why: "sandboxes as root need CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID and CAP_CHOWN".to_owned(),
            remedy: "give the service these capabilities, or run it as an ordinary user".to_owned(),
        })),
        _ => Ok(Ids::Single),
    }
}

pub(super) fn assurances(config: &Config, ids: Ids, cgroups: &Cgroups, nodes: Nodes<'_>) -> Assurances {
    let proven_by_groups = cgroups.can_kill();
    let hard = ids == Ids::Range && disk::is_possible(nodes);
    Assurances {
        uid_map: ids.into(),
        proof: if proven_by_groups { Proof::Cgroup } else { Proof::PidNamespace },
        append_only: if pile::is_enforceable(&config.state) { AppendOnly::Enforced } else { AppendOnly::None },
        disk_quota: if hard { DiskQuota::Hard } else { DiskQuota::Soft },
        leftovers: if proven_by_groups { Leftovers::Visible } else { Leftovers::Hidden },
        limits: vec![
            ("memory", cgroups.memory_by().unwrap_or("rlimit of each process")),
            ("processes", cgroups.processes_by().unwrap_or("rlimit")),
            ("cpu", cgroups.cpu_by().unwrap_or("a priority below the service's")),
            ("open files", "rlimit"),
            ("file size", "rlimit"),
        ],
    }
}

impl From<Ids> for UidMap {
    fn from(ids: Ids) -> Self {
        match ids {
            Ids::Range => Self::Range,
            Ids::Single => Self::Single,
        }
    }
}

fn has_capabilities() -> bool {
    use rustix::thread::CapabilitySet as Set;
    let needed = Set::SYS_ADMIN | Set::SETUID | Set::SETGID | Set::CHOWN;
    rustix::thread::capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Says which setting made the kernel refuse.
fn explain(step: &str, fault: &io::Error) -> BackendError {
    let setting = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let remedy = if setting("/proc/sys/user/max_user_namespaces") == "0" {
        "user namespaces are switched off: `sysctl user.max_user_namespaces=15000` as root allows them"
    } else if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" && !geteuid().is_root() {
        "user namespaces are for root alone: `sysctl kernel.unprivileged_userns_clone=1` as root allows them to all"
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !geteuid().is_root() {
        "AppArmor restricts user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root lifts it, \
         or load a profile that allows `userns` to this program"
    } else if step.contains("proc on /proc") {
        "a container hides parts of /proc: run it with `--security-opt systempaths=unconfined`, or run on the host"
    } else if filtered() {
        "a seccomp filter of an outer container forbids it: run it with `--security-opt seccomp=unconfined`, or on the host"
    } else if fault.raw_os_error() == Some(libc::ENOSPC) {
        "the host's limit of namespaces is used up: raise `sysctl user.max_user_namespaces` and its siblings"
    } else {
        "Linux 5.14 or newer with user namespaces and cgroup namespaces is needed"
    };
    let what = if step == NEW_NAMESPACES { "namespaces".to_owned() } else { step.to_owned() };
    BackendError::NoIsolation(NoIsolation { what, why: fault.to_string(), remedy: remedy.to_owned() })
}

/// Whether this process already stands under somebody's seccomp filter.
fn filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

const PROBE_RANGE: u32 = u32::MAX - 2 * RANGE;
