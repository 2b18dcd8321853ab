//! `playground.toml`: all that an operator can say of a service, in one file.
//!
//! It is read strictly: a key that nobody knows is refused with the nearest that is known. What it says counts less
//! than a flag or the environment. Only a file that was named is read.

mod external;
mod lists;
mod oauth;
mod places;
mod recover;
mod sandbox;
mod tls;
mod values;
mod workers;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::de::DeTable;

use super::error::{FileError, FileFault};
use super::{Hsts, Places, Worker};
use crate::acme::Proof;
use crate::edge::network::Network;
use crate::manager::credential;
use crate::regular::{self, NotOpened};
use crate::worker::entry::{Entry, Limits as WorkerLimits, place};

pub use external::External;
pub use oauth::OAuth;
pub use sandbox::Sandbox;
pub use tls::{Pair, Tls};

/// The whole file. A key that is absent says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    #[serde(deserialize_with = "values::address")]
    pub bind: Option<SocketAddr>,
    #[serde(deserialize_with = "values::address")]
    pub redirect_bind: Option<SocketAddr>,
    #[serde(deserialize_with = "values::address")]
    pub bearer_bind: Option<SocketAddr>,
    #[serde(deserialize_with = "values::hsts")]
    pub hsts: Option<Hsts>,
    pub state: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    pub admin: Option<PathBuf>,
    #[serde(deserialize_with = "values::hosts")]
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub trusted_proxies: Vec<Network>,
    pub proxy_protocol: Option<bool>,
    pub edge_user: Option<String>,
    pub backend: Option<Backend>,
    pub sandbox: Sandbox,
    pub workers: Option<PathBuf>,
    pub limits: Limits,
    pub oauth: OAuth,
    pub tls: Option<Tls>,
    pub acme: Option<Acme>,
    pub audit: Audit,
    /// Read with their places, by the rules that a manifest has.
    #[serde(rename = "worker")]
    _worker: Ignored,
    #[serde(skip)]
    pub worker: Vec<Worker>,
    /// Of `[limits.worker]`.
    #[serde(skip)]
    pub worker_limits: WorkerLimits,
    /// Where it names other files.
    #[serde(skip)]
    pub places: Places,
    /// Keys that were said wrongly, and are therefore missing here.
    #[serde(skip)]
    lost: Vec<String>,
}

/// What could be read of a file.
#[derive(Debug)]
pub struct Examined {
    /// Without what is wrong; none where it is no TOML.
    pub file: Option<File>,
    /// Each with the file, the line and the column.
    pub faults: Vec<FileError>,
}

/// What is read elsewhere.
type Ignored = Option<IgnoredAny>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Linux,
    Jail,
    Lima,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub body: Option<NonZeroUsize>,
    pub sessions: Option<NonZeroUsize>,
    pub sessions_per_tenant: Option<NonZeroUsize>,
    #[serde(deserialize_with = "values::time")]
    pub session_idle: Option<Duration>,
    pub tenant_rate: Option<NonZeroU32>,
    #[serde(deserialize_with = "values::bandwidth")]
    pub tenant_bandwidth: Option<NonZeroU64>,
    pub exchanges: Option<NonZeroUsize>,
    pub exchanges_per_tenant: Option<NonZeroUsize>,
    pub streams_per_tenant: Option<NonZeroUsize>,
    pub handshakes_per_address: Option<NonZeroUsize>,
    #[serde(deserialize_with = "values::time")]
    pub drain: Option<Duration>,
    #[serde(rename = "worker")]
    _worker: Ignored,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    pub enabled: Option<bool>,
    pub arguments: Option<bool>,
    pub on_failure: Option<OnFailure>,
    #[serde(deserialize_with = "values::rotation")]
    pub rotate_bytes: Option<NonZeroU64>,
    pub daily: Option<bool>,
    pub keep: Option<NonZeroUsize>,
}

/// What becomes of calls that cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    Continue,
    Refuse,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Acme {
    #[serde(deserialize_with = "values::domains")]
    pub domains: Vec<String>,
    pub agree_to_terms: bool,
    #[serde(deserialize_with = "values::contacts")]
    pub contacts: Vec<String>,
    #[serde(deserialize_with = "values::https")]
    pub directory: Option<String>,
    pub staging: bool,
    pub challenge: Option<Proof>,
    #[serde(deserialize_with = "values::time")]
    pub retry: Option<Duration>,
}

impl File {
    /// Reads the file; blocking.
    ///
    /// # Errors
    /// Each fault with the file, the line and the column; at least one.
    pub fn load(path: &Path) -> Result<Self, Vec<FileError>> {
        match Self::examine(path) {
            Examined { file: Some(file), faults } if faults.is_empty() => Ok(file),
            Examined { faults, .. } => Err(faults),
        }
    }

    /// Reads as much of the file as can be; blocking.
    #[must_use]
    pub fn examine(path: &Path) -> Examined {
        let told = |fault| Examined { file: None, faults: vec![FileError::new(path, fault)] };
        let text = match regular::text(path, MOST_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return told(FileFault::TooLarge),
            Err(NotOpened::NotRegular(name)) => return told(FileFault::NotRegular(name)),
            Err(fault @ (NotOpened::Io(_) | NotOpened::NotHanded(_))) => {
                return told(FileFault::Unreadable(fault.into()));
            }
        };
        let mut examined = Self::parse(path, &text);
        if let Some(file) = &mut examined.file {
            file.seat(path.parent().unwrap_or(Path::new("")));
        }
        examined
    }

    fn parse(path: &Path, text: &str) -> Examined {
        let malformed = |fault| FileError::malformed(path, text, &fault);
        let (mut tree, faults) = DeTable::parse_recoverable(text);
        // What stands behind a slip of the pen may be read as anything.
        if !faults.is_empty() {
            return Examined { file: None, faults: faults.into_iter().map(malformed).collect() };
        }
        let (said, found) = workers::read(tree.get_ref());
        let (share_at, places) = (share_place(tree.get_ref()), places::read(tree.get_ref(), text));
        let lists::Wrong { faults: entries, lost: shorter } = lists::sift(tree.get_mut());
        let recover::Rest { said: rest, faults: others, mut lost } = recover::read::<Self>(tree);
        lost.extend(shorter);
        if !found.is_empty() {
            lost.push("worker".to_owned());
        }
        let mut faults: Vec<_> = found.into_iter().map(|found| FileError::entry(path, text, found)).collect();
        let of_list = |(at, fault)| FileError::placed(path, place(text, at), FileFault::Malformed(fault));
        faults.extend(entries.into_iter().map(of_list));
        faults.extend(others.into_iter().map(malformed));
        let placed = |entry: Entry| Worker { token_place: place(text, entry.token_at), entry };
        let worker = said.entries.into_iter().map(placed).collect();
        let file = rest.map(|file| Self { worker, worker_limits: said.limits, places, lost, ..file });
        if let Some(file) = &file
            && let (Some(at), Some(fault)) = (share_at, file.limits.share())
            && !file.lost(&["exchanges"])
        {
            faults.push(FileError::placed(path, place(text, at), fault));
        }
        Examined { file, faults }
    }

    /// Whether one of these keys is missing only because it was said wrongly.
    #[must_use]
    pub fn lost(&self, keys: &[&str]) -> bool {
        self.lost.iter().any(|lost| keys.contains(&lost.as_str()))
    }

    /// What isolates tenants: the table's word, else the one at the top.
    #[must_use]
    pub fn backend(&self) -> Option<Backend> {
        self.sandbox.said.backend.or(self.backend)
    }

    /// Makes its paths those of its folder.
    fn seat(&mut self, folder: &Path) {
        self.places.seat(folder);
        let Self { state, tokens, admin, workers, oauth, tls, worker, sandbox, .. } = self;
        sandbox.seat(folder);
        let token_files = worker.iter_mut().map(|worker| &mut worker.entry.token_file);
        for path in [state, tokens, admin, workers, &mut oauth.state].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        for path in tls.iter_mut().flat_map(Tls::paths).chain(token_files) {
            *path = credential::place(folder, path);
        }
    }
}

/// Where a tenant's part of all exchanges stands.
fn share_place(file: &DeTable<'_>) -> Option<usize> {
    let limits = file.get("limits")?.get_ref().as_table()?;
    Some(limits.get("exchanges_per_tenant")?.span().start)
}

impl Limits {
    /// What nobody gets is not to be promised.
    fn share(&self) -> Option<FileFault> {
        let asked = self.exchanges_per_tenant?.get();
        let exchanges = self.exchanges.map_or(super::Limits::default().exchanges, NonZeroUsize::get);
        let most = (exchanges / SHARES).max(1);
        (asked > most).then_some(FileFault::Share { asked, exchanges, most })
    }
}

impl Backend {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Jail => "jail",
            Self::Lima => "lima",
        }
    }
}

impl Examined {
    /// Of no file at all, which says nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { file: Some(File::default()), faults: Vec::new() }
    }
}

/// As many as a manifest of workers may have.
const MOST_BYTES: usize = 1024 * 1024;

/// A tenant never gets more than one of so many parts of all exchanges.
const SHARES: usize = 4;

/// Every key, with what it means.
pub const EXAMPLE: &str = include_str!("example.toml");

#[cfg(test)]
mod tests;
