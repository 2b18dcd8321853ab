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
mod workers;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use toml::de::DeTable;

use super::error::{FileError, FileFault};
use super::{Places, Worker};
use crate::acme::Proof;
use crate::edge::network::Network;
use crate::manager::credential;
use crate::regular::{self, NotOpened};
use crate::spelled::{self, Misspelled};
use crate::worker::entry::{Entry, Limits as WorkerLimits, place};

pub use external::External;
pub use oauth::OAuth;
pub use sandbox::Sandbox;

/// The whole file. A key that is absent says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    #[serde(deserialize_with = "address")]
    pub bind: Option<SocketAddr>,
    #[serde(deserialize_with = "address")]
    pub redirect_bind: Option<SocketAddr>,
    #[serde(deserialize_with = "address")]
    pub bearer_bind: Option<SocketAddr>,
    pub state: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    pub admin: Option<PathBuf>,
    #[serde(deserialize_with = "hosts")]
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
    #[serde(deserialize_with = "time")]
    pub session_idle: Option<Duration>,
    pub tenant_rate: Option<NonZeroU32>,
    #[serde(deserialize_with = "bandwidth")]
    pub tenant_bandwidth: Option<NonZeroU64>,
    pub exchanges: Option<NonZeroUsize>,
    pub exchanges_per_tenant: Option<NonZeroUsize>,
    pub streams_per_tenant: Option<NonZeroUsize>,
    pub handshakes_per_address: Option<NonZeroUsize>,
    #[serde(deserialize_with = "time")]
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
    #[serde(deserialize_with = "rotation")]
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Whose certificates clients must show.
    pub client_ca: Option<PathBuf>,
    /// For other names.
    #[serde(default)]
    pub certificate: Vec<Pair>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Acme {
    #[serde(deserialize_with = "domains")]
    pub domains: Vec<String>,
    pub agree_to_terms: bool,
    #[serde(deserialize_with = "contacts")]
    pub contacts: Vec<String>,
    #[serde(deserialize_with = "https")]
    pub directory: Option<String>,
    pub staging: bool,
    pub challenge: Option<Proof>,
    #[serde(deserialize_with = "time")]
    pub retry: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
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
        let tls = tls.iter_mut().flat_map(|Tls { cert, key, client_ca, certificate }| {
            let others = certificate.iter_mut().flat_map(|pair| [&mut pair.cert, &mut pair.key]);
            [cert, key].into_iter().chain(client_ca).chain(others)
        });
        let token_files = worker.iter_mut().map(|worker| &mut worker.entry.token_file);
        for path in [state, tokens, admin, workers, &mut oauth.state].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        for path in tls.chain(token_files) {
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

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed(from, spelled::address).map(Some)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, spelled::duration).map(Some)
}

fn bandwidth<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
    let bytes = NonZeroU64::deserialize(from)?;
    if bytes < LEAST_BANDWIDTH {
        let fault =
            format!("bytes a second are wanted, at least {LEAST_BANDWIDTH}: with less, answers would take minutes");
        return Err(serde::de::Error::custom(fault));
    }
    Ok(Some(bytes))
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::host)
}

fn domains<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::domain)
}

fn contacts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    each(from, spelled::contact)
}

/// Those that are right: the others were taken out before.
fn each<'de, D: Deserializer<'de>>(
    from: D,
    read: impl Fn(&str) -> Result<String, Misspelled>,
) -> Result<Vec<String>, D::Error> {
    Vec::<String>::deserialize(from)?.iter().map(|text| read(text).map_err(serde::de::Error::custom)).collect()
}

fn rotation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU64>, D::Error> {
    let bytes = NonZeroU64::deserialize(from)?;
    if bytes < LEAST_ROTATION {
        let fault =
            format!("bytes are wanted, at least {LEAST_ROTATION}: with less, a file would be full after a few calls");
        return Err(serde::de::Error::custom(fault));
    }
    Ok(Some(bytes))
}

fn https<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parsed(from, spelled::https).map(Some)
}

fn parsed<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    from: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// As many as a manifest of workers may have.
const MOST_BYTES: usize = 1024 * 1024;

/// A tenant never gets more than one of so many parts of all exchanges.
const SHARES: usize = 4;

/// So that no exchange of a tenant waits for long behind its others.
const LEAST_BANDWIDTH: NonZeroU64 = NonZeroU64::new(1024 * 1024).expect("no zero");

/// Some hundred calls, so that the files that are kept reach back further than a moment.
const LEAST_ROTATION: NonZeroU64 = NonZeroU64::new(64 * 1024).expect("no zero");

/// Every key, with what it means.
pub const EXAMPLE: &str = include_str!("example.toml");

#[cfg(test)]
mod tests;
