//! What a service has on the host at rest, which must not become more.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fleet::Fleet;
use crate::process::{PATIENCE, family_of};

/// What there is at one instant.
pub(super) struct Remains {
    processes: usize,
    mounts: usize,
    loops: usize,
    groups: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    descriptors: [usize; 3],
    /// Of the supervisor and the edge; the worker is always a new one.
    memory: [u64; 2],
    members: [u32; 3],
}

impl Remains {
    /// What there is when nothing moves any more.
    pub(super) fn settled(fleet: &Fleet) -> Self {
        let deadline = kit::clock::now() + PATIENCE;
        let mut last = Self::now(fleet);
        let mut same = 0;
        while same < 10 {
            assert!(kit::clock::now() < deadline, "the service does not come to rest");
            std::thread::sleep(Duration::from_millis(10));
            let now = Self::now(fleet);
            same = if now.count() == last.count() { same + 1 } else { 0 };
            last = now;
        }
        last
    }

    fn now(fleet: &Fleet) -> Self {
        let members = fleet.members();
        let state = fleet.state();
        Self {
            processes: service_processes(&members, &state),
            mounts: mounts(&state),
            loops: loops(&state).len(),
            groups: groups(&state),
            files: files(&state),
            descriptors: members.map(descriptors),
            memory: [resident(members[0]), resident(members[1])],
            members,
        }
    }

    fn count(&self) -> (usize, usize, usize, usize, usize, [usize; 3]) {
        let Self { processes, mounts, loops, groups, files, descriptors, .. } = self;
        (*processes, *mounts, *loops, groups.len(), files.len(), *descriptors)
    }

    /// Waits until there is no more than there was, and says what is more when that does not come.
    pub(super) fn assert_no_less_clean(&self, fleet: &Fleet, when: &str) {
        let deadline = kit::clock::now() + PATIENCE;
        loop {
            let now = Self::now(fleet);
            let more = self.exceeded_by(&now);
            if more.is_empty() {
                return;
            }
            assert!(kit::clock::now() < deadline, "{when}: more than before:\n{}", more.join("\n"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn exceeded_by(&self, now: &Self) -> Vec<String> {
        let mut more = Vec::new();
        let mut count = |what: &str, before: u64, now: u64| {
            if now > before {
                more.push(format!("{what}: {before} -> {now}"));
            }
        };
        count("processes", self.processes as u64, now.processes as u64);
        count("mounts", self.mounts as u64, now.mounts as u64);
        count("loop devices", self.loops as u64, now.loops as u64);
        for (index, (who, kept)) in [("supervisor", 0), ("edge", KEPT), ("worker", KEPT)].into_iter().enumerate() {
            let bound = self.descriptors[index] + kept;
            count(&format!("descriptors of the {who}"), bound as u64, now.descriptors[index] as u64);
        }
        for (index, who) in ["supervisor", "edge"].into_iter().enumerate() {
            // Another process has another past.
            if self.members[index] == now.members[index] {
                let bound = self.memory[index] + self.memory[index] / 10;
                count(&format!("KiB of the {who} (10 % more allowed)"), bound, now.memory[index]);
            }
        }
        more.extend(now.groups.difference(&self.groups).map(|group| format!("cgroup {}", group.display())));
        more.extend(now.files.difference(&self.files).map(|file| format!("file {}", file.display())));
        more
    }

    /// Before and now, for the record.
    pub(super) fn compared(&self, fleet: &Fleet) -> String {
        let now = Self::now(fleet);
        format!(
            "(processes, mounts, loop devices, cgroups, files, descriptors of supervisor, edge, worker): {:?} -> {:?}; \
             KiB of supervisor and edge: {:?} -> {:?}",
            self.count(),
            now.count(),
            self.memory,
            now.memory
        )
    }
}

/// After the service's orderly end and its tenants' removal.
pub(super) fn assert_nothing_of(state: &Path) {
    assert_eq!(service_processes(&[], state), 0, "processes are left");
    assert_eq!(mounts(state), 0, "mounts are left");
    assert_eq!(loops(state), Vec::<PathBuf>::new(), "loop devices are left");
    assert_eq!(groups(state), BTreeSet::new(), "control groups are left");
    let tenants = state.join("sandbox/tenants");
    let left: Vec<_> = fs::read_dir(tenants).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "folders of tenants are left");
}

/// How many processes have a mark among their arguments.
pub(crate) fn marked(mark: &str) -> usize {
    processes()
        .filter(|id| {
            let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
        })
        .count()
}

/// Those below the members and those that live in the state's control groups, wherever they hang.
fn service_processes(members: &[u32], state: &Path) -> usize {
    let mut all: BTreeSet<u32> = members.iter().copied().collect();
    for member in members {
        all.extend(family_of(*member).iter().map(|process| process.id));
    }
    let name = service(state);
    all.extend(
        processes()
            .filter(|id| fs::read_to_string(format!("/proc/{id}/cgroup")).is_ok_and(|groups| groups.contains(&name))),
    );
    // What is dead waits for its parent, which may be the host's first process: how soon that looks is no matter of ours.
    all.retain(|id| {
        fs::read_to_string(format!("/proc/{id}/stat"))
            .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.starts_with(" Z")))
    });
    all.len()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").expect("there is a /proc").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn mounts(state: &Path) -> usize {
    let state = state.to_str().expect("text");
    fs::read_to_string("/proc/mounts").expect("read").lines().filter(|line| line.contains(state)).count()
}

/// The loop devices whose image lies below a folder; they exist also where no table of mounts names them.
pub(crate) fn loops(state: &Path) -> Vec<PathBuf> {
    let state = state.to_str().expect("text");
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices
        .map(|device| device.path())
        .filter(|device| {
            fs::read_to_string(device.join("loop/backing_file")).is_ok_and(|backing| backing.starts_with(state))
        })
        .collect()
}

fn service(state: &Path) -> String {
    let found = state.join("sandbox").metadata().expect("there");
    let made = found.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    let made = made.map_or_else(String::new, |made| format!("-{:x}", made.as_nanos()));
    format!("playground-{:x}-{:x}{made}", found.dev(), found.ino())
}

/// Every control group of a state.
pub(crate) fn groups(state: &Path) -> BTreeSet<PathBuf> {
    let name = service(state);
    let (mut found, mut open) = (BTreeSet::new(), vec![(PathBuf::from("/sys/fs/cgroup"), false)]);
    while let Some((folder, ours)) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let ours = ours || entry.file_name().to_string_lossy() == name;
                if ours {
                    found.insert(entry.path());
                }
                open.push((entry.path(), ours));
            }
        }
    }
    found
}

/// Everything in a state that is not a tenant's own.
fn files(state: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![state.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_tenants = ["home", "workspace"].iter().any(|own| entry.file_name() == **own);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_tenants {
                open.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

fn descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().count()
}

/// In KiB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The edge keeps so many connections to a worker at most, and for a while each of both may hold as many.
const KEPT: usize = 32;
