//! The model: one JSON file under a lock, beside the trees that its datasets and machines are.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

pub(crate) const TEMPLATE: &str = "aitemp/playground/template";

/// Why a program does not do what it is told.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What the real program would say no to, with its words and its exit code.
    Failed(String, i32),
    /// What the model does not know: the test fails by it.
    Refused(String),
}

impl From<io::Error> for Fault {
    fn from(fault: io::Error) -> Self {
        Self::Refused(fault.to_string())
    }
}

pub(crate) fn failed<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(text.into(), 1))
}

pub(crate) fn refused<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Refused(why.into()))
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) datasets: BTreeMap<String, Words>,
    pub(crate) snapshots: Vec<String>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) jails: BTreeMap<String, Words>,
    pub(crate) rules: Vec<String>,
    pub(crate) flags: BTreeMap<String, Vec<String>>,
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) hosts: Vec<String>,
    pub(crate) interfaces: BTreeMap<String, Vec<(String, String)>>,
    pub(crate) sudo: bool,
    pub(crate) sysctls: Words,
    pub(crate) calls: u64,
    #[serde(default)]
    pub(crate) met: BTreeMap<String, u64>,
}

pub(crate) type Words = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: String,
    pub(crate) target: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) how: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) status: String,
    pub(crate) mounts: Vec<Words>,
}

impl Model {
    /// Where a path leads below the mounts: what is mounted last on it or above it hides the rest.
    pub(crate) fn through(&self, path: &str) -> String {
        let rows = self.mounts.iter().rev().filter(|row| row.kind == "nullfs");
        let led = rows.filter_map(|row| beyond(path, &row.target).map(|rest| format!("{}{rest}", row.source))).next();
        led.unwrap_or_else(|| path.to_owned())
    }

    pub(crate) fn sysctl(&self, name: &str) -> &str {
        self.sysctls.get(name).map_or("", String::as_str)
    }
}

#[derive(Clone)]
pub(crate) struct World {
    root: PathBuf,
    is_root: bool,
}

/// Whose the host is: the process that made it, whose end is the host's.
pub(crate) const OWNER: &str = "owner";

/// Says to a program who it is, where it is not root.
pub(crate) const USER: &str = "FAKEHOST_USER";
pub(crate) const OPERATOR: &str = "operator";

impl World {
    /// The host that a program is of, by the path it was started by or else by the only folder of its `PATH`, and its name.
    pub(crate) fn around(path: &str) -> Option<(Self, String)> {
        let path = Path::new(path);
        let bin = match path.parent().filter(|folder| folder.as_os_str() != "") {
            Some(folder) => folder.to_owned(),
            None => PathBuf::from(std::env::var("PATH").ok().filter(|folders| !folders.contains(':'))?),
        };
        let root = bin.canonicalize().ok()?.parent()?.to_owned();
        let is_root = std::env::var(USER).map_or(true, |user| user != OPERATOR);
        Some((Self { root, is_root }, path.file_name()?.to_str()?.to_owned()))
    }

    pub(crate) fn as_root(&self) -> Self {
        Self { is_root: true, ..self.clone() }
    }

    /// Only root may: here everybody is, and at the other end of an ssh whoever sudo made it.
    pub(crate) fn privileged(&self) -> Result<(), Fault> {
        if self.is_root { Ok(()) } else { failed("Operation not permitted") }
    }

    /// Has a program be of the same user.
    pub(crate) fn belong(&self, command: &mut Command) {
        if self.is_root {
            command.env_remove(USER);
        }
    }

    pub(crate) fn path(&self, rest: &str) -> PathBuf {
        self.root.join(rest)
    }

    pub(crate) fn word(&self, rest: &str) -> String {
        letters(&self.path(rest))
    }

    /// The model, for one program at a time; kept if all goes well.
    pub(crate) fn model<T>(&self, work: impl FnOnce(&mut Model) -> Result<T, Fault>) -> Result<T, Fault> {
        let lock = File::create(self.path("lock"))?;
        lock.lock()?;
        let mut model: Model = serde_json::from_slice(&fs::read(self.path("model.json"))?).map_err(io::Error::from)?;
        let before = model.clone();
        let done = work(&mut model)?;
        if model != before {
            self.keep(&model)?;
        }
        Ok(done)
    }

    pub(crate) fn keep(&self, model: &Model) -> Result<(), Fault> {
        let fresh = self.path("model.json.new");
        fs::write(&fresh, serde_json::to_vec(model).map_err(io::Error::from)?)?;
        Ok(fs::rename(fresh, self.path("model.json"))?)
    }

    pub(crate) fn owner(&self) -> Option<Pid> {
        fs::read_to_string(self.path(OWNER)).ok().and_then(|text| Pid::from_raw(text.parse().ok()?))
    }

    /// Whether whoever made this host, and could still take it away, is there, and the host itself.
    pub(crate) fn lives(&self) -> bool {
        self.owner().is_some_and(|owner| rustix::process::test_kill_process(owner) != Err(Errno::SRCH))
    }

    pub(crate) fn note(&self, name: &str, line: &str) {
        let file = OpenOptions::new().create(true).append(true).open(self.path(name));
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    /// Checks a path that an administrator's program is to touch: absolute, and of this world.
    pub(crate) fn inside<'a>(&self, path: &'a str) -> Result<&'a str, Fault> {
        if !path.starts_with('/') {
            return refused(format!("a path that is not absolute: {path:?}"));
        }
        let real = real(path);
        if !within(&real, &letters(&self.root)) {
            return refused(format!("{path} leads out of this host, to {real}"));
        }
        Ok(path)
    }
}

pub(crate) fn letters(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What of a path comes after a folder that it is in or is.
fn beyond<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn within(path: &str, folder: &str) -> bool {
    beyond(path, folder).is_some()
}

/// A path without links, of which the end may not be there.
pub(crate) fn real(path: &str) -> String {
    fn led(path: &Path, most: usize) -> PathBuf {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        // One that leads to what is not there.
        if let (Ok(target), Some(folder), 1..) = (fs::read_link(path), path.parent(), most) {
            return led(&folder.join(target), most - 1);
        }
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => led(folder, most).join(name),
            (Some(folder), None) => led(folder, most).parent().map_or_else(PathBuf::new, Path::to_owned),
            (None, _) => path.to_owned(),
        }
    }
    letters(&led(Path::new(path), 40))
}

/// Whether it is a folder, for those that mount one on another.
pub(crate) fn is_folder(path: &str) -> Result<bool, Fault> {
    match fs::metadata(path) {
        Ok(its) => Ok(its.is_dir()),
        Err(fault) => failed(format!("{path}: {}", why(&fault))),
    }
}

/// As C's library says it.
pub(crate) fn why(fault: &io::Error) -> String {
    let text = fault.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Copies a folder with its links and modes.
pub(crate) fn copy(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let (to, kind) = (target.join(name), fs::symlink_metadata(&from)?.file_type());
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&from)?, to)?;
        } else if kind.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    fs::set_permissions(target, fs::metadata(source)?.permissions())
}
