//! A host of machines that is only pretended: `limactl` does as it is told, and every file that is asked for is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::host::{Act, Argv, Output, Process, RunError, Runner, Script, Step, over};
use crate::backend::lima::disk::Disk;
use crate::backend::lima::mark::MADE_FROM;
use crate::backend::lima::{RUNNING, machine};
use crate::backend::{Ends, Pending, Streams};

pub(super) struct World {
    state: Mutex<State>,
    script: Script,
}

#[derive(Default)]
struct State {
    machines: BTreeMap<String, &'static str>,
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl World {
    pub(super) fn new(script: Script) -> Self {
        Self { state: Mutex::default(), script }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, step: Step) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push(Act::Done(step));
    }

    fn answer(&self, argv: &Argv) -> Output {
        let State { machines, files, .. } = &mut *self.state();
        let words: Vec<_> = argv.arguments().iter().map(String::as_str).collect();
        match words[..] {
            ["list", ..] => {
                return Output::good(
                    machines.iter().map(|(name, state)| format!("{name} {state} {LIMA}/{name}\n")).collect::<String>(),
                );
            }
            ["create", _, "--name", name, file] => {
                machines.insert(name.to_owned(), machine::STOPPED);
                let text = files.get(Path::new(file)).cloned().unwrap_or_default();
                files.insert(Path::new(LIMA).join(name).join(MADE_FROM), text);
            }
            ["stop", name] | ["stop", "--force", name] => {
                machines.insert(name.to_owned(), machine::STOPPED);
            }
            ["start", _, name] => {
                machines.insert(name.to_owned(), RUNNING);
            }
            ["delete", _, name] => {
                machines.remove(name);
            }
            _ => {}
        }
        Output::good("")
    }
}

impl Runner for World {
    fn run<'a>(&'a self, argv: &'a Argv, _: Option<&'a [u8]>, _: Duration) -> Pending<'a, Result<Output, RunError>> {
        let answer = self.answer(argv);
        Box::pin(async { Ok(answer) })
    }

    fn start(&self, argv: &Argv, _: bool, _: &Streams) -> Result<(Process, Ends), RunError> {
        over(argv, &self.answer(argv))
    }

    fn is_local_root(&self) -> bool {
        false
    }
}

impl Disk for World {
    fn own_folder(&self, why: &str, path: &Path) -> io::Result<()> {
        if self.state().folders.insert(path.to_owned()) {
            self.done(Step::new(why, Argv::new("mkdir", ["-p", "-m", "700", &shown(path)])));
        }
        Ok(())
    }

    fn replace(&self, why: &str, path: &Path, _: u32, content: &[u8]) -> io::Result<()> {
        // What is written again as it was says nothing.
        if self.state().files.insert(path.to_owned(), content.to_owned()).as_deref() != Some(content) {
            self.done(Step::new(why, Argv::new("tee", [shown(path)])).input(content));
        }
        Ok(())
    }

    fn link(&self, why: &str, file: &Path, place: &Path) -> io::Result<()> {
        if self.state().files.insert(place.to_owned(), Vec::new()).is_none() {
            self.done(Step::new(why, Argv::new("ln", [shown(file), shown(place)])));
        }
        Ok(())
    }

    fn remove_file(&self, why: &str, path: &Path) -> io::Result<()> {
        if self.state().files.remove(path).is_some() {
            self.done(Step::new(why, Argv::new("rm", ["-f", &shown(path)])));
        }
        Ok(())
    }

    fn remove_folder(&self, why: &str, path: &Path) -> io::Result<bool> {
        let state = &mut *self.state();
        state.files.retain(|file, _| !file.starts_with(path));
        let before = state.folders.len();
        state.folders.retain(|folder| !folder.starts_with(path));
        let was_there = state.folders.len() != before;
        if was_there {
            self.done(Step::new(why, Argv::new("rm", ["-r", &shown(path)])));
        }
        Ok(was_there)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.state().files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.state().files.keys().filter(|file| file.parent() == Some(folder)).cloned().collect())
    }

    /// The operator's own files are not looked for.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        let is_operators = path.file_name().is_some_and(|name| name == "self.key");
        Ok(is_operators || state.files.contains_key(path) || state.folders.contains(path))
    }

    fn regular(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
}

/// Where Lima would have machines.
const LIMA: &str = "/Users/operator/.lima";

fn shown(path: &Path) -> String {
    path.display().to_string()
}
