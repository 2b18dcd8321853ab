//! `playground.toml`: all that an operator can say of a service, in one file.
//!
//! It is read strictly: a key that nobody knows is refused with the nearest that is known. What it says counts less
//! than a flag or the environment. Only a file that was named is read.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Deserializer};

use super::error::{FileError, FileFault};
use crate::spelled;
use crate::worker::terms::{Bounds, Bridge};
use crate::worker::{Loopback, Terms};

/// The whole file. A key that is absent says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    #[serde(deserialize_with = "address")]
    pub bind: Option<SocketAddr>,
    pub state: Option<PathBuf>,
    pub tokens: Option<PathBuf>,
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub trusted_proxies: Vec<IpAddr>,
    pub edge_user: Option<String>,
    pub backend: Option<Backend>,
    pub sandbox: Option<bool>,
    pub workers: Option<PathBuf>,
    pub limits: Limits,
    pub tls: Option<Tls>,
    pub worker: Vec<Worker>,
}

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
    pub exchanges: Option<NonZeroUsize>,
    pub exchanges_per_tenant: Option<NonZeroUsize>,
    #[serde(deserialize_with = "time")]
    pub drain: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A native worker.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    #[serde(deserialize_with = "tenant")]
    pub tenant: Tenant,
    #[serde(deserialize_with = "loopback")]
    pub address: Loopback,
    pub token_file: PathBuf,
    pub name: Option<String>,
    #[serde(default)]
    pub bridge: Bridge,
    #[serde(default)]
    pub shared_catalogue: bool,
    #[serde(default)]
    pub limits: WorkerLimits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerLimits {
    #[serde(deserialize_with = "time")]
    pub connect: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub head: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub idle: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub total: Option<Duration>,
    pub most_reply: Option<u64>,
}

impl File {
    /// Reads the file; blocking.
    ///
    /// # Errors
    /// With the file, the line and the column.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let mut text = String::new();
        fs::File::open(path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
            .map_err(|fault| FileError::new(path, FileFault::Unreadable(fault)))?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > MOST_BYTES {
            return Err(FileError::new(path, FileFault::TooLarge));
        }
        let mut file = Self::parse(path, &text)?;
        file.seat(path.parent().unwrap_or(Path::new("")));
        Ok(file)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|fault| FileError::malformed(path, text, &fault))
    }

    /// Makes its paths those of its folder.
    fn seat(&mut self, folder: &Path) {
        let Self { state, tokens, workers, tls, worker, .. } = self;
        let tls = tls.iter_mut().flat_map(|tls| [&mut tls.cert, &mut tls.key]);
        let token_files = worker.iter_mut().map(|worker| &mut worker.token_file);
        for path in [state, tokens, workers].into_iter().flatten().chain(tls).chain(token_files) {
            *path = folder.join(&*path);
        }
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

impl Worker {
    #[must_use]
    pub fn terms(&self) -> Terms {
        let default = Bounds::default();
        let WorkerLimits { connect, head, idle, total, most_reply } = &self.limits;
        Terms {
            name: self.name.clone(),
            bridge: self.bridge,
            shared_catalogue: self.shared_catalogue,
            bounds: Bounds {
                connect: connect.unwrap_or(default.connect),
                head: head.unwrap_or(default.head),
                idle: idle.unwrap_or(default.idle),
                total: total.unwrap_or(default.total),
                most_reply_bytes: most_reply.unwrap_or(default.most_reply_bytes),
            },
            ..Terms::default()
        }
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed(from, spelled::address).map(Some)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, spelled::duration).map(Some)
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(from)?;
    hosts.iter().map(|host| spelled::host(host).map_err(serde::de::Error::custom)).collect()
}

fn tenant<'de, D: Deserializer<'de>>(from: D) -> Result<Tenant, D::Error> {
    parsed(from, Tenant::parse)
}

fn loopback<'de, D: Deserializer<'de>>(from: D) -> Result<Loopback, D::Error> {
    parsed(from, Loopback::parse)
}

fn parsed<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    from: D,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// As many as a manifest of workers may have.
const MOST_BYTES: u64 = 1024 * 1024;

/// Every key, with what it means.
pub const EXAMPLE: &str = include_str!("example.toml");

#[cfg(test)]
mod tests;
