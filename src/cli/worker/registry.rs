//! The native workers that a service is told of, and the one file of them that verbs change.

use std::path::{Path, PathBuf};

use clap::Args;
use kit::Tenant;

use super::super::failure::{Code, Failure};
use super::super::oauth::unchanged;
use super::super::say;
use crate::config::file::File as Config;
use crate::store::Place;
use crate::worker::entry::Entry;
use crate::worker::manifest::{self, ManifestFault};
use crate::worker::terms::Bounds;
use crate::worker::{Upstream, token_file};

/// The flags that name the workers.
#[derive(Clone, Debug, Args)]
pub(super) struct Source {
    /// The list that `serve --workers` and `serve --faculties-workers` read.
    #[arg(long, value_name = "FILE", alias = "faculties-workers")]
    workers: Option<PathBuf>,

    /// The playground.toml that `serve --config` reads: its [[worker]] tables, and the list that it names.
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_CONFIG")]
    config: Option<PathBuf>,
}

/// Every worker that was named.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) rows: Vec<Entry>,
    pub(super) bounds: Bounds,
    /// The flags that named them, for a command that a person is to run next.
    pub(super) flags: String,
    /// The list that can be changed, whether or not it is there yet.
    pub(super) manifest: Option<PathBuf>,
}

/// A list that nobody else changes meanwhile.
pub(super) struct Held {
    pub(super) path: PathBuf,
    /// Nothing where it is not there yet.
    pub(super) text: Option<String>,
    place: Place,
}

impl Source {
    /// Reads all of it; blocking.
    pub(super) fn read(&self) -> Result<Registry, Failure> {
        let said = self.config.as_deref().filter(|path| !path.as_os_str().is_empty());
        if said.is_none() && self.workers.is_none() {
            return Err(Failure::message(Code::Usage, "no list of workers is named")
                .hint("name what `serve` is started with: --workers FILE or --config playground.toml"));
        }
        // A list that is named by itself stands for itself.
        let config = match (&self.workers, said) {
            (None, Some(path)) => Config::load(path).map_err(|faults| {
                Failure::all(faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration)))
            })?,
            (Some(_), _) | (None, None) => Config::default(),
        };
        let manifest = self.workers.clone().or(config.workers);
        let mut rows = match &manifest {
            Some(path) if self.workers.is_none() || path.exists() => {
                let text = manifest::text(path).map_err(unusable)?;
                manifest::listed(path, &text).map_err(unusable)?
            }
            Some(_) | None => Vec::new(),
        };
        rows.extend(config.worker.into_iter().map(|worker| worker.entry));
        Ok(Registry { flags: self.flags(), rows, bounds: config.worker_limits.over(&Bounds::default()), manifest })
    }
}

impl Source {
    fn flags(&self) -> String {
        let flag = |(name, path): (&str, &Option<PathBuf>)| {
            let path = path.as_ref().filter(|path| !path.as_os_str().is_empty())?;
            Some(format!(" {name} {}", say::quoted(&path.to_string_lossy())))
        };
        // A list that is named stands for itself.
        let named = [("--workers", &self.workers), ("--config", &self.config)];
        named.into_iter().find_map(flag).unwrap_or_default()
    }
}

impl Registry {
    pub(super) fn of(&self, tenant: &Tenant) -> Option<&Entry> {
        self.rows.iter().find(|entry| entry.tenant == *tenant)
    }

    pub(super) fn missing(&self, tenant: &Tenant) -> Failure {
        Failure::message(Code::Missing, format!("tenant `{tenant}` has no worker")).hint(self.those_there_are())
    }

    pub(super) fn those_there_are(&self) -> String {
        format!("`playground worker list{}` shows those there are", self.flags)
    }

    /// The list to change.
    pub(super) fn to_change(&self) -> Result<&Path, Failure> {
        self.manifest.as_deref().ok_or_else(|| {
            Failure::message(Code::Configuration, "the playground.toml names no list of workers to change").hint(
                "write workers = \"workers.json\" into it and run this again, or edit its [[worker]] tables yourself",
            )
        })
    }

    /// A worker as the edge would reach it.
    pub(super) fn upstream(&self, entry: &Entry) -> Result<Upstream, Failure> {
        let bearer = token_file::read(&entry.token_file).map_err(|fault| {
            Failure::message(Code::Configuration, format!("token file {}: {fault}", entry.token_file.display()))
        })?;
        Ok(Upstream { terms: entry.terms(&self.bounds), ..Upstream::native(entry.address, bearer) })
    }
}

impl Held {
    /// Waits for whoever changes the list, and keeps others from it; blocking.
    pub(super) fn take(path: &Path) -> Result<Self, Failure> {
        let place = Place::lock(path).map_err(unchanged)?;
        // A link stays one, and leads to what is changed.
        let path = place.path().to_owned();
        let is_there = path
            .try_exists()
            .map_err(|fault| Failure::new(anyhow::Error::new(fault).context(format!("look at {}", path.display()))))?;
        let text = is_there.then(|| manifest::text(&path).map_err(unusable)).transpose()?;
        Ok(Self { path, text, place })
    }

    pub(super) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let text = self.text.as_deref().map(|text| manifest::listed(&self.path, text));
        text.transpose().map(Option::unwrap_or_default).map_err(unusable)
    }

    /// Puts another text in its place, whole or not at all; blocking.
    pub(super) fn put(self, text: &str) -> Result<(), Failure> {
        // What is not a list must not become one by our hand.
        manifest::listed(&self.path, text).map_err(unusable)?;
        self.place.put(text.as_bytes()).map_err(unchanged)
    }
}

pub(in crate::cli) fn unusable(faults: Vec<ManifestFault>) -> Failure {
    Failure::all(faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration)))
}

/// Where a worker's messages go, as a person writes it.
pub(super) fn place(entry: &Entry) -> String {
    format!("{}{}", entry.address, entry.path.uri())
}

pub(super) fn taken_up() {
    say::talk(
        "a service that runs with this list takes it up by itself within seconds; `playground reload` does so at once",
    );
}
