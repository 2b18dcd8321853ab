//! What a group can hold its processes to, and how each version is told.

use std::fs;
use std::io;
use std::path::Path;

use super::super::wire::HEAD_ROOM;
use crate::settings::Limits;

/// One kind of bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Processes,
    Cpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
}

impl Controller {
    pub(super) const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::Cpu];

    /// The name of its hierarchy in the first version.
    pub(super) fn in_first(self) -> &'static str {
        self.name()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::Cpu => "cpu",
        }
    }

    /// Holds a tenant's group to its limits.
    pub(super) fn bound(self, version: Version, folder: &Path, limits: &Limits) -> io::Result<()> {
        match self {
            Self::Memory => memory(version, folder, limits.memory),
            Self::Processes => write(folder, "pids.max", limits.processes.saturating_add(HEAD_ROOM)),
            Self::Cpu => {
                // The same for all, so that each tenant that wants the processors gets as much of them as the next.
                match version {
                    Version::First => write(folder, "cpu.shares", USUAL_SHARES)?,
                    Version::Second => write(folder, "cpu.weight", USUAL_WEIGHT)?,
                }
                let Some(percent) = limits.cpu_percent else { return Ok(()) };
                let quota = percent.max(1).saturating_mul(PERIOD / 100);
                match version {
                    Version::First => write(folder, "cpu.cfs_quota_us", quota),
                    Version::Second => write(folder, "cpu.max", format_args!("{quota} {PERIOD}")),
                }
            }
        }
    }

    /// Holds the group of all tenants together to what the host can spare.
    pub(super) fn bound_all(self, version: Version, folder: &Path) -> io::Result<()> {
        match self {
            Self::Memory => match available(folder) {
                Some(total) => memory(version, folder, total - reserve(total)),
                None => Ok(()),
            },
            Self::Processes => match host_processes() {
                Some(most) => write(folder, "pids.max", most - most / 4),
                None => Ok(()),
            },
            Self::Cpu => match version {
                Version::First => write(folder, "cpu.shares", USUAL_SHARES / 2),
                Version::Second => write(folder, "cpu.weight", USUAL_WEIGHT / 2),
            },
        }
    }
}

/// Lets a group of the second version bound those below it; tells what it then can.
pub(super) fn enable(folder: &Path) -> Vec<Controller> {
    let enabled = |controller: Controller| {
        let text = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        text.split_whitespace().any(|name| name == controller.name())
    };
    let mut found = Vec::new();
    // One by one: a host that has given away only some is a host that gives these.
    for controller in Controller::ALL {
        if !enabled(controller) {
            let _ = fs::write(folder.join("cgroup.subtree_control"), format!("+{}", controller.name()));
        }
        if enabled(controller) {
            found.push(controller);
        }
    }
    found
}

fn memory(version: Version, folder: &Path, bytes: u64) -> io::Result<()> {
    match version {
        Version::First => {
            // The bound with swap may never be the smaller one, so a bound that grows needs it first and one that
            // shrinks needs it last; it is absent where the kernel does not count swap.
            let _ = write(folder, "memory.memsw.limit_in_bytes", bytes);
            write(folder, "memory.limit_in_bytes", bytes)?;
            let _ = write(folder, "memory.memsw.limit_in_bytes", bytes);
        }
        Version::Second => {
            write(folder, "memory.max", bytes)?;
            // Absent where the kernel does not count swap.
            let _ = write(folder, "memory.swap.max", 0);
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    let file = folder.join(name);
    fs::write(&file, value.to_string())
        .map_err(|fault| io::Error::new(fault.kind(), format!("write {}: {fault}", file.display())))
}

/// What is kept back for the service and the host: a quarter, as a small host needs as much beside its tenants, and no
/// more than 2 GiB, which is plenty for an edge and a worker with every buffer full.
fn reserve(total: u64) -> u64 {
    (total / 4).min(2 << 30)
}

/// The memory in bytes that there is for a group: the machine's, or less if a group above it has less.
fn available(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    let machine = kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    let bounds = ["memory.limit_in_bytes", "memory.max"];
    let above = folder.ancestors().skip(1).flat_map(|above| bounds.map(|name| above.join(name)));
    // An unbounded group has a very large number, or a word.
    above.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).chain([machine]).min()
}

/// How many processes this machine can number.
fn host_processes() -> Option<u64> {
    let bounds = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    bounds.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok()).min()
}

/// The kernel's own default, which the groups of other services have.
const USUAL_SHARES: u64 = 1024;
const USUAL_WEIGHT: u64 = 100;

/// Microseconds in which a hard bound on the processors is counted; the kernel's own default.
const PERIOD: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::{Controller, Version, available, reserve};
    use crate::settings::Limits;

    fn told(controller: Controller, version: Version, limits: &Limits) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        controller.bound(version, folder.path(), limits).unwrap();
        let mut files: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
            .collect();
        files.sort();
        files
    }

    fn files(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_version_is_told_in_its_own_words() {
        let limits = Limits { memory: 1 << 20, processes: 10, cpu_percent: Some(150), ..Limits::default() };
        let check = |controller, version, expected: &[(&str, &str)]| {
            assert_eq!(told(controller, version, &limits), files(expected));
        };
        check(Controller::Memory, Version::Second, &[("memory.max", "1048576"), ("memory.swap.max", "0")]);
        check(
            Controller::Memory,
            Version::First,
            &[("memory.limit_in_bytes", "1048576"), ("memory.memsw.limit_in_bytes", "1048576")],
        );
        check(Controller::Processes, Version::Second, &[("pids.max", "42")]);
        check(Controller::Cpu, Version::Second, &[("cpu.max", "150000 100000"), ("cpu.weight", "100")]);
        check(Controller::Cpu, Version::First, &[("cpu.cfs_quota_us", "150000"), ("cpu.shares", "1024")]);
        let uncapped = Limits { cpu_percent: None, ..limits.clone() };
        assert_eq!(told(Controller::Cpu, Version::First, &uncapped), files(&[("cpu.shares", "1024")]));
    }

    #[test]
    fn a_group_above_that_has_less_counts_as_the_machine() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("a/b");
        std::fs::create_dir_all(&folder).unwrap();
        let machine = available(&folder).unwrap();
        std::fs::write(above.path().join("memory.max"), "max\n").unwrap();
        std::fs::write(folder.join("memory.max"), "1\n").unwrap();
        assert_eq!(available(&folder), Some(machine), "its own bound is the one to be decided");
        std::fs::write(above.path().join("memory.max"), "1048576\n").unwrap();
        assert_eq!(available(&folder), Some(1 << 20));
    }

    #[test]
    fn a_quarter_is_kept_back_and_never_more_than_two_gibibytes() {
        let gibibytes = |count: u64| count << 30;
        for (total, kept) in [(1, 0), (4, 1), (8, 2), (9, 2), (1024, 2)] {
            assert_eq!(reserve(gibibytes(total)) >> 30, kept, "{total}");
        }
        assert_eq!(reserve(gibibytes(8) - 4), gibibytes(2) - 1);
    }
}
