//! What the host sees of sandboxes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// A process, told from a later one with the same number by when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    pub(crate) zombie: bool,
    parent: i32,
    began: u64,
}

/// Every process below another, which is not listed itself.
pub(crate) fn family(root: i32) -> Vec<Seen> {
    let all = processes();
    let mut family: Vec<Seen> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            family.push(process.clone());
        }
    }
    family
}

/// Which of these processes are still there and alive.
pub(crate) fn survivors(before: &[Seen]) -> Vec<Seen> {
    before.iter().filter(|old| see(old.pid).is_some_and(|now| now.began == old.began && !now.zombie)).cloned().collect()
}

pub(crate) fn is_there(pid: i32) -> bool {
    see(pid).is_some()
}

pub(crate) fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// The child of this process above the one whose arguments hold a mark.
pub(crate) fn first_process_above(mark: &str) -> i32 {
    let marked = |process: &&Seen| {
        let arguments = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(mark)
    };
    let all = processes();
    let mut process = all.iter().find(marked).expect("the marked command runs").clone();
    let own = i32::try_from(std::process::id()).unwrap();
    while process.parent != own {
        process = see(process.parent).expect("a first process stands above");
    }
    process.pid
}

/// The control groups of the service with this state folder.
pub(crate) fn groups(state: &Path) -> Vec<PathBuf> {
    let found = state.metadata().unwrap();
    let made = found.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    let made = made.map_or_else(String::new, |made| format!("-{:x}", made.as_nanos()));
    let name = format!("playground-{:x}-{:x}{made}", found.dev(), found.ino());
    let mut groups = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy() == name {
                    groups.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    groups
}

/// The loop devices that show a file below this folder.
pub(crate) fn loop_devices(below: &Path) -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let shown = |device: fs::DirEntry| fs::read_to_string(device.path().join("loop/backing_file")).ok();
    devices.filter_map(shown).map(|file| PathBuf::from(file.trim())).filter(|file| file.starts_with(below)).collect()
}

/// A file of a tenant's, as the host can reach it while the tenant runs.
pub(crate) fn inside(first_process: i32, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{first_process}/root{path}"))
}

fn processes() -> Vec<Seen> {
    let names = fs::read_dir("/proc").unwrap().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(see).collect()
}

fn see(pid: i32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Seen {
        pid,
        zombie: matches!(fields.first(), Some(&("Z" | "X"))),
        parent: fields.get(1)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}
