//! A fake host of one test's own, and what the test knows and does about it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{self, Watched, run, skip, text};

pub(crate) const POOL: &str = "aitemp/playground";
pub(crate) const TEMPLATE: &str = "aitemp/playground/template@base";
pub(crate) const REFUSED: i32 = 99;

pub(crate) struct World {
    place: TempDir,
}

impl World {
    /// A fresh host, or a word on why there cannot be one here.
    pub(crate) fn new(what: &str) -> Option<Self> {
        if let Err(why) = can_be() {
            skip(what, why);
            return None;
        }
        let place = tempfile::tempdir().expect("a folder");
        let world = Self { place };
        std::fs::create_dir(world.path("bin")).expect("a folder");
        let fakehost = fakehost().as_ref().expect("asked above");
        std::os::unix::fs::symlink(fakehost, world.path("bin/host")).expect("linked");
        world.host("new");
        Some(world)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().canonicalize().expect("it is there")
    }

    pub(crate) fn path(&self, rest: &str) -> PathBuf {
        self.root().join(rest)
    }

    /// The same as a word of a command line.
    pub(crate) fn word(&self, rest: &str) -> String {
        self.path(rest).to_str().expect("a path of letters").to_owned()
    }

    /// What a test does to the host itself: `new` or `reboot`.
    pub(crate) fn host(&self, verb: &str) {
        let output = self.run("host", [verb]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    /// A program of this host, with nothing but this host around it.
    pub(crate) fn program<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = process::program(self.path("bin").join(name));
        command.args(words).env("PATH", self.path("bin")).env("HOME", self.root());
        command
    }

    pub(crate) fn run<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> Output {
        run(self.program(name, words))
    }

    /// What a program that has to work wrote.
    pub(crate) fn told<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.run(name, words);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Checks that a program says no, with these words.
    pub(crate) fn refused<'a>(&self, name: &str, words: impl IntoIterator<Item = &'a str>, why: &str) {
        let output = self.run(name, words);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }

    pub(crate) fn model(&self) -> Value {
        let model = std::fs::read(self.path("model.json")).expect("the model");
        serde_json::from_slice(&model).expect("whole")
    }

    /// Changes the model while no program runs.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut model = self.model();
        change(&mut model);
        std::fs::write(self.path("model.json"), model.to_string()).expect("written");
    }

    /// What is to go wrong from now on; the calls are counted anew.
    pub(crate) fn fault(&self, faults: &Value) {
        std::fs::write(self.path("faults.json"), faults.to_string()).expect("written");
        self.change(|model| {
            model["calls"] = json!(0);
            model["met"] = json!({});
        });
    }

    /// Every file of the host's datasets, with its kind, mode and content, as a line each; of a key the length.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.path("pool")];
        while let Some(path) = open.pop() {
            let its = std::fs::symlink_metadata(&path).expect("there");
            let content = if its.is_file() { std::fs::read(&path).expect("read") } else { Vec::new() };
            let content = if path.ends_with("self.key") { its.len().to_string() } else { format!("{content:?}") };
            found.push(format!("{} {:o} {content}", path.display(), its.permissions().mode()));
            if its.is_dir() {
                open.extend(std::fs::read_dir(&path).expect("listed").map(|entry| entry.expect("read").path()));
            }
        }
        found.sort();
        found
    }

    /// The same for two hosts that are the same for whoever works on them.
    pub(crate) fn digest(&self) -> Vec<String> {
        let mut model = self.model();
        for name in ["calls", "met"] {
            model.as_object_mut().expect("a map").remove(name);
        }
        let mut all = self.files();
        all.push(model.to_string());
        all
    }

    /// Every call since the host was made, as a line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let lines = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let calls = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("whole"));
        calls
            .map(|call| call["argv"].as_array().expect("words").iter().map(word_of).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// What no program knew, which a test that means it takes away.
    pub(crate) fn take_violations(&self) -> String {
        let violations = std::fs::read_to_string(self.path("violations")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("violations"));
        violations
    }

    /// The processes in the trees of jails and machines.
    pub(crate) fn guests(&self) -> Vec<Watched> {
        let root = self.root();
        let is_in = |id: &u32| std::fs::read_link(format!("/proc/{id}/root")).is_ok_and(|its| its.starts_with(&root));
        processes().filter(is_in).filter_map(Watched::try_of).collect()
    }

    /// Waits until no program of this host runs any more.
    pub(crate) fn settle(&self) {
        let mark = format!("PATH={}", self.path("bin").display());
        loop {
            let ours = |id: &u32| {
                let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
            };
            let left: Vec<_> = processes().filter(ours).filter_map(Watched::try_of).collect();
            if left.is_empty() {
                return;
            }
            for process in left {
                assert!(process.gone_within(process::PATIENCE), "process {} is left", process.id);
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What a test has left running when it failed would go on in a tree that is gone.
        for guest in self.guests() {
            let id = i32::try_from(guest.id).ok().and_then(rustix::process::Pid::from_raw).expect("an id");
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
        let violations = self.take_violations();
        assert!(std::thread::panicking() || violations.is_empty(), "{violations}");
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn word_of(word: &Value) -> &str {
    word.as_str().expect("a word")
}

/// Whether a fake host can be here: mount namespaces, and the program that its programs are.
pub(crate) fn can_be() -> Result<(), &'static str> {
    fakehost().as_ref().map_err(|why| *why)?;
    static SPACES: OnceLock<bool> = OnceLock::new();
    let spaces = SPACES.get_or_init(|| {
        let mut command = process::program("/usr/bin/unshare");
        command.args(["--mount", "--map-root-user", "/bin/true"]);
        command.output().is_ok_and(|output| output.status.success())
    });
    spaces.then_some(()).ok_or("no mount namespaces")
}

/// The one program that a fake host's programs are. Cargo builds it if it is not as its sources are: it is of another package,
/// so that nothing says where it is and that it is fresh.
pub(crate) fn fakehost() -> &'static Result<PathBuf, &'static str> {
    static BUILT: OnceLock<Result<PathBuf, &'static str>> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("FAKEHOST_BIN") {
            return Ok(path.into());
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's own folder");
        let mut command = process::program(env!("CARGO"));
        command
            .args(["build", "--quiet", "--locked", "--package", "fakehost", "--profile", "dev", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .envs(std::env::vars_os());
        let output = command.output().map_err(|_no_cargo| "no cargo")?;
        assert!(output.status.success(), "{}", text(&output.stderr));
        Ok(target.join("debug/fakehost"))
    })
}
