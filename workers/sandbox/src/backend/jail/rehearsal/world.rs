//! A FreeBSD host that is only pretended: datasets, mounts, jails and files, as far as the plans go.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::files::Files;
use super::{Setting, Settings};
use crate::backend::host::{Argv, Output, Process, RunError, Runner, over};
use crate::backend::jail::network::Network;
use crate::backend::{Ends, Pending, Streams};

/// The pretended host.
pub(in crate::backend::jail) struct World {
    state: Mutex<State>,
    /// What a test has it answer otherwise.
    twist: Mutex<Option<Twist>>,
    /// Every line that was run.
    ran: Mutex<Vec<String>>,
}

pub(in crate::backend::jail) type Twist = Box<dyn FnMut(&[&str]) -> Option<Result<Output, RunError>> + Send>;

struct State {
    template: String,
    datasets: BTreeMap<String, BTreeMap<String, String>>,
    /// Source, target, kind.
    mounts: Vec<(String, String, String)>,
    jails: BTreeSet<String>,
    variables: BTreeMap<&'static str, String>,
    address: Option<String>,
    files: Files,
}

impl World {
    pub(in crate::backend::jail) fn new(settings: &Settings, setting: Setting) -> Self {
        let flag = |is_set: bool| if is_set { "1" } else { "0" }.to_owned();
        let variables = [
            ("security.jail.jailed", flag(setting.is_jailed)),
            ("security.jail.enforce_statfs", "0".to_owned()),
            ("kern.racct.enable", flag(setting.racct)),
            ("kern.securelevel", "1".to_owned()),
        ];
        let parent = settings.dataset_parent.to_string();
        let place = format!("/{parent}");
        let mut files = Files::default();
        for folder in [&settings.pile_root, &settings.bootstrap_pile].into_iter().flat_map(|path| path.line()) {
            files.folder(folder.as_str());
        }
        files.file(settings.bootstrap_pile.as_str(), b"");
        files.folder(&format!("{}/shared", settings.pile_root));
        if settings.relations_collection != Some(crate::backend::jail::text::Relations::None) {
            files.file(&format!("{}/shared/shared.pile", settings.pile_root), b"");
        }
        files.file("/etc/resolv.conf", b"");
        let piles = settings.pile_root.as_str().trim_start_matches('/').to_owned();
        let datasets = [(parent, place), (piles, settings.pile_root.to_string())];
        let datasets = datasets.map(|(name, place)| (name, BTreeMap::from([("mountpoint".to_owned(), place)])));
        let address = match &settings.network {
            Network::None | Network::Inherit => None,
            Network::Address(_, address) => Some(address.to_string()),
        };
        let state = State {
            template: settings.template_snapshot.to_string(),
            datasets: datasets.into_iter().collect(),
            mounts: vec![("zroot".to_owned(), "/".to_owned(), "zfs".to_owned())],
            jails: BTreeSet::new(),
            variables: variables.into_iter().collect(),
            address,
            files,
        };
        Self { state: Mutex::new(state), twist: Mutex::default(), ran: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, argv: &Argv, input: Option<&[u8]>) -> Result<Output, RunError> {
        let words = argv.words(true);
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(words.join(" "));
        if let Some(twist) = &mut *self.twist.lock().unwrap_or_else(PoisonError::into_inner)
            && let Some(answer) = twist(&words)
        {
            return answer;
        }
        Ok(self.state().answer(&words, input.unwrap_or_default()).unwrap_or_else(|said| Output::bad(1, said)))
    }
}

impl State {
    fn answer(&mut self, words: &[&str], input: &[u8]) -> Result<Output, String> {
        match words {
            ["sysctl", "-n", name] => {
                let value = self.variables.get(name).ok_or_else(|| format!("sysctl: unknown oid '{name}'"))?;
                Ok(Output::good(format!("{value}\n")))
            }
            ["zfs", rest @ ..] => self.zfs(rest),
            ["mount"] => Ok(Output::good(self.table())),
            ["mount", "-t", kind, how @ .., source, target] => {
                let kind = if *how == ["-o", "ro"] { format!("{kind}, read-only") } else { (*kind).to_owned() };
                self.mounts.push(((*source).to_owned(), (*target).to_owned(), kind));
                Ok(Output::good(""))
            }
            ["umount", "-f", target] => {
                let last = self.mounts.iter().rposition(|(_, upon, _)| upon == target);
                self.mounts.remove(last.ok_or_else(|| format!("umount: {target}: not a file system root directory"))?);
                Ok(Output::good(""))
            }
            ["jls", "-n", "name"] => {
                Ok(Output::good(self.jails.iter().map(|name| format!("name={name}\n")).collect::<String>()))
            }
            ["jail", "-c", name, ..] => {
                self.jails.insert(name.trim_start_matches("name=").to_owned());
                Ok(Output::good(""))
            }
            ["jail", "-r", name] if self.jails.remove(*name) => Ok(Output::good("")),
            ["jail", "-r", name] => Err(format!("jail: \"{name}\" not found")),
            ["ifconfig", _] => Ok(Output::good(self.address.as_ref().map_or_else(String::new, |address| {
                format!("\t{} {address} netmask\n", if address.contains(':') { "inet6" } else { "inet" })
            }))),
            ["rctl" | "jexec" | "timeout", ..] => Ok(Output::good("")),
            _ => self.files.answer(words, input),
        }
    }

    fn zfs(&mut self, words: &[&str]) -> Result<Output, String> {
        let absent = |name: &str| format!("cannot open '{name}': dataset does not exist");
        match words {
            ["list", "-H", "-o", "name", "-d", "1", "-r", parent] => {
                let below = format!("{parent}/");
                let ours = self.datasets.keys().filter(|name| *name == parent || name.starts_with(&below));
                Ok(Output::good(ours.map(|name| format!("{name}\n")).collect::<String>()))
            }
            ["list", name] if self.datasets.contains_key(*name) => Ok(Output::good(format!("NAME\n{name}\n"))),
            ["list", name] => Err(absent(name)),
            ["get", .., property, name] => {
                let own = self.datasets.get(*name).ok_or_else(|| absent(name))?;
                Ok(Output::good(format!("{}\n", own.get(*property).map_or("-", String::as_str))))
            }
            ["set", pair, name] => {
                let own = self.datasets.get_mut(*name).ok_or_else(|| absent(name))?;
                let (property, value) = pair.split_once('=').ok_or("missing value")?;
                own.insert(property.to_owned(), value.to_owned());
                Ok(Output::good(""))
            }
            ["clone", origin, name] if *origin == self.template => {
                let place = format!("/{name}");
                for folder in ["", "/dev", "/etc"] {
                    self.files.folder(&format!("{place}{folder}"));
                }
                self.files.file(&format!("{place}/etc/profile"), b"# The template's.\n");
                let own = [("mountpoint".to_owned(), place), ("origin".to_owned(), (*origin).to_owned())];
                self.datasets.insert((*name).to_owned(), own.into_iter().collect());
                Ok(Output::good(""))
            }
            ["destroy", name] => {
                let own = self.datasets.remove(*name).ok_or_else(|| absent(name))?;
                self.files.forget(own.get("mountpoint").map_or("", String::as_str));
                Ok(Output::good(""))
            }
            _ => Err(format!("zfs: {words:?} is not pretended")),
        }
    }

    fn table(&self) -> String {
        let datasets = self.datasets.iter().filter_map(|(name, own)| {
            let place = own.get("mountpoint")?;
            Some(format!("{name} on {place} (zfs, local, noatime, nfsv4acls)\n"))
        });
        let others = self.mounts.iter().map(|(source, target, kind)| format!("{source} on {target} ({kind}, local)\n"));
        others.chain(datasets).collect()
    }
}

impl Runner for World {
    fn run<'a>(
        &'a self,
        argv: &'a Argv,
        input: Option<&'a [u8]>,
        _: Duration,
    ) -> Pending<'a, Result<Output, RunError>> {
        let answer = self.answer(argv, input);
        Box::pin(async { answer })
    }

    fn start(&self, argv: &Argv, _: bool, _: &Streams) -> Result<(Process, Ends), RunError> {
        over(argv, &self.answer(argv, None)?)
    }

    fn is_local_root(&self) -> bool {
        false
    }
}

#[cfg(test)]
impl World {
    pub(in crate::backend::jail) fn twist(
        &self,
        twist: impl FnMut(&[&str]) -> Option<Result<Output, RunError>> + Send + 'static,
    ) {
        *self.twist.lock().unwrap() = Some(Box::new(twist));
    }

    pub(in crate::backend::jail) fn untwist(&self) {
        *self.twist.lock().unwrap() = None;
    }

    /// Every line that was run since the last look, without `sudo`.
    pub(in crate::backend::jail) fn ran(&self) -> Vec<String> {
        std::mem::take(&mut *self.ran.lock().unwrap())
    }

    pub(in crate::backend::jail) fn set(&self, dataset: &str, property: &str, value: &str) {
        self.state().datasets.get_mut(dataset).unwrap().insert(property.to_owned(), value.to_owned());
    }

    pub(in crate::backend::jail) fn variable(&self, name: &'static str, value: &str) {
        self.state().variables.insert(name, value.to_owned());
    }

    pub(in crate::backend::jail) fn mount(&self, source: &str, target: &str, kind: &str) {
        self.state().mounts.push((source.to_owned(), target.to_owned(), kind.to_owned()));
    }

    /// Does what a program would, outside of what the backend does.
    pub(in crate::backend::jail) fn by_hand(&self, words: &[&str], input: &[u8]) {
        self.state().answer(words, input).unwrap();
    }

    /// Everything that is there, for comparing: datasets, mounts, jails, files.
    pub(in crate::backend::jail) fn snapshot(&self) -> String {
        let state = self.state();
        format!("{:#?}\n{:#?}\n{:#?}\n{}", state.datasets, state.mounts, state.jails, state.files.snapshot())
    }

    pub(in crate::backend::jail) fn link(&self, path: &str) {
        self.state().files.link(path);
    }

    pub(in crate::backend::jail) fn text(&self, path: &str) -> Option<String> {
        self.state().files.text(path)
    }
}
