//! Processes of guests: entered into their trees, found by them, and ended.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// A mount namespace of its own, in which the tree has what is mounted on it. The host's programs are the guest's.
const ENTER: &str = r#"
set -e
root=$1 cwd=$2; shift 2
while [ "$1" != -- ]; do /bin/mount -o "bind,$3" "$1" "$root$2"; shift 3; done
shift
exec /usr/sbin/chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$cwd" "$@"
"#;

pub(crate) const GUEST_PATH: &str = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin";

/// What of the host is seen in a guest.
pub(crate) struct Bind {
    pub(crate) source: String,
    pub(crate) place: String,
    pub(crate) how: String,
}

impl Bind {
    pub(crate) fn new(source: impl Into<String>, place: impl Into<String>, how: impl Into<String>) -> Self {
        Self { source: source.into(), place: place.into(), how: how.into() }
    }
}

/// What runs a command in a tree.
pub(crate) fn entering(tree: &str, binds: &[Bind], cwd: &str, argv: &[String]) -> Command {
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["/bin/sh", "-c", ENTER, "enter", tree, cwd]);
    for bind in [&Bind::new("/usr", "/usr", "rw")].into_iter().chain(binds) {
        command.args([&bind.source, &bind.place, &bind.how]);
    }
    command.arg("--").args(argv);
    command
}

/// An exit code as a shell tells it.
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Every process whose root is this tree.
pub(crate) fn inside(tree: &str) -> Vec<Pid> {
    let is_in = |process: &Pid| {
        fs::read_link(format!("/proc/{}/root", process.as_raw_pid())).is_ok_and(|root| root.as_os_str() == tree)
    };
    all().filter(is_in).collect()
}

/// Ends a guest's processes, those that they start meanwhile too.
pub(crate) fn end_inside(tree: &str) {
    loop {
        let left = inside(tree);
        if left.is_empty() {
            return;
        }
        for process in left {
            end(process, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn end(process: Pid, how: Signal) {
    let _ = rustix::process::kill_process(process, how);
}

/// The parent of every living process.
fn parents() -> BTreeMap<i32, i32> {
    let parent = |process: Pid| {
        let number = process.as_raw_pid();
        let text = fs::read(format!("/proc/{number}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        (fields.next()? != "Z").then_some(())?;
        Some((number, fields.next()?.parse().ok()?))
    };
    all().filter_map(parent).collect()
}

/// Every living process below this one.
pub(crate) fn below() -> Vec<Pid> {
    let parents = parents();
    let (mut found, mut open) = (Vec::new(), vec![rustix::process::getpid().as_raw_pid()]);
    while let Some(parent) = open.pop() {
        let children: Vec<i32> = parents.iter().filter(|(_, its)| **its == parent).map(|(child, _)| *child).collect();
        found.extend(children.iter().filter_map(|child| Pid::from_raw(*child)));
        open.extend(children);
    }
    found
}

/// The nearest playground above this program.
pub(crate) fn playground() -> Option<Pid> {
    let parents = parents();
    let mut process = rustix::process::getpid().as_raw_pid();
    loop {
        process = *parents.get(&process)?;
        let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
        if name.trim_end() == "playground" {
            return Pid::from_raw(process);
        }
    }
}
