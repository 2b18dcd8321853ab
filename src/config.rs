//! What a service is told to be, after the command line was read and before anything is opened.
//!
//! Each part of the service gets its own share of this and no part reads the command line, the environment or a global.

mod error;
pub mod file;
mod hsts;
mod places;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sandbox::backend::Kind;

use crate::acme;
use crate::audit::Terms;
use crate::edge::network::Network;
use crate::oauth::Settings;
use crate::state::StateDir;
use crate::telemetry::Verbosity;
use crate::worker::entry::Entry;
use crate::worker::terms::Bounds;

pub use error::{FileError, FileFault};
pub use hsts::Hsts;
pub use places::Places;

/// A whole service.
#[derive(Clone, Debug)]
pub struct Config {
    pub bind: SocketAddr,
    /// Where plain HTTP is sent from to the names of `hosts` over HTTPS.
    pub redirect_bind: Option<SocketAddr>,
    /// What browsers are told of HTTPS [default: as the redirect says].
    pub hsts: Option<Hsts>,
    /// Where clients with a token connect that must find nothing of logging in.
    pub bearer_bind: Option<SocketAddr>,
    /// Without one, sessions end with the process and there is no operator socket.
    pub state: Option<StateDir>,
    pub credentials: PathBuf,
    /// Where clients log in themselves, where they can.
    pub oauth: Option<OAuth>,
    /// Somebody else's authorization server, whose tokens count too.
    pub external: Option<crate::oauth::issuer::Settings>,
    /// The test door: documents are fetched from loopback too, believing this authority.
    pub fetch_from_loopback: Option<PathBuf>,
    /// The session keys that several edges share [default: the state's own, else ones that end with the process].
    pub session_key_file: Option<PathBuf>,
    /// Where monitoring asks: a unix socket [default: the state's own, else none].
    pub admin_socket: Option<PathBuf>,
    /// What a credential of the original's form must name.
    pub backend: String,
    pub upstreams: Upstreams,
    /// Native workers that were said one by one, beside those of a manifest.
    pub workers: Vec<Worker>,
    /// The `playground.toml` that it was read from. What it leads to must not be anyone's to change or to read.
    pub file: Option<PathBuf>,
    /// Where it names other files.
    pub places: Places,
    /// Host names that clients may use; none means any well-formed one, with a warning beyond loopback.
    pub hosts: Vec<String>,
    /// Of these, the ones at which there is no logging in.
    pub bearer_hosts: Vec<String>,
    pub origins: Vec<String>,
    pub proxies: Vec<Network>,
    /// Whether these begin each connection with a PROXY header.
    pub proxy_protocol: bool,
    pub limits: Limits,
    /// What a native worker is served within where its own entry says nothing.
    pub worker_bounds: Bounds,
    pub edge_user: EdgeUser,
    /// An authority that gives a certificate by itself.
    pub acme: Option<acme::Settings>,
    /// The test door: an authority whose own certificate is believed, on loopback.
    pub acme_trust: Option<PathBuf>,
    /// Whose certificates clients must show.
    pub client_ca: Option<PathBuf>,
    /// HTTPS in the edge itself, where there is one at all; the first serves whoever names none of them.
    pub tls: Vec<Tls>,
    /// How calls are recorded; none: they are not.
    pub audit: Option<Audit>,
    /// Whether a host that cannot isolate is a fault even where native tenants could be served.
    pub needs_sandbox: bool,
    pub verbosity: Verbosity,
}

/// What stands behind the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstreams {
    /// The built-in sandbox worker as a child, and native workers where a manifest names them.
    Sandbox { kind: Kind, manifest: Option<PathBuf> },
    /// A sandbox worker that runs as a service of its own.
    Elsewhere { address: SocketAddr, token_file: PathBuf, manifest: Option<PathBuf> },
    /// Native workers alone.
    Native { manifest: Option<PathBuf> },
}

/// The bounds that an operator can move; all others are constants of the stage they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub session_idle: Duration,
    pub body: usize,
    pub sessions: usize,
    pub sessions_per_tenant: usize,
    /// Requests a second of one tenant, sustained.
    pub tenant_rate: u32,
    /// Bytes a second of answers to one tenant.
    pub tenant_bandwidth: u64,
    /// Calls and streams under way at once.
    pub exchanges: usize,
    pub exchanges_per_tenant: usize,
    /// Of those, the streams that have no end of their own.
    pub streams_per_tenant: usize,
    /// TLS handshakes of one address that are under way at once.
    pub handshakes_per_address: usize,
    pub drain: Duration,
}

/// A native worker of a `playground.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub entry: Entry,
    /// The line and the column at which its token file is named.
    pub token_place: (usize, usize),
}

/// Who the edge runs as when the service was started by root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeUser {
    /// The user `playground` where there is one, else a uid that no one else has.
    Default,
    /// A user's name or a uid.
    Named(String),
}

/// Logins of clients by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    /// The file that keeps what they leave behind.
    pub state: PathBuf,
    pub settings: Settings,
}

/// The record of calls in the state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    pub terms: Terms,
    /// Files beside the one that is written to.
    pub keep: usize,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Default for Audit {
    fn default() -> Self {
        Self { terms: Terms::default(), keep: 16 }
    }
}

impl Config {
    /// Whether clients speak TLS with the edge itself.
    #[must_use]
    pub fn speaks_tls(&self) -> bool {
        !self.tls.is_empty() || self.acme.is_some()
    }

    /// For how long browsers are told to come by HTTPS alone; nothing where HTTPS is somebody else's.
    #[must_use]
    pub fn https_alone(&self) -> Option<Duration> {
        let hsts = self.hsts.unwrap_or_else(|| Hsts::usual(self.redirect_bind.is_some()));
        hsts.told().filter(|_| self.speaks_tls())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session_idle: Duration::from_secs(3600),
            // The sandbox's own file tool takes 3 MiB, which base64 and JSON make larger.
            body: 8 << 20,
            sessions: 10_000,
            sessions_per_tenant: 64,
            tenant_rate: 100,
            tenant_bandwidth: 64 << 20,
            exchanges: 1024,
            exchanges_per_tenant: 64,
            streams_per_tenant: 32,
            // A client opens a handful at once; as many as share an address come one after the other.
            handshakes_per_address: 32,
            drain: Duration::from_secs(30),
        }
    }
}

impl Upstreams {
    /// Whether the sandbox worker of both is the same one, whatever their lists of native workers say.
    #[must_use]
    pub fn is_kind_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sandbox { .. }, Self::Sandbox { .. }) | (Self::Native { .. }, Self::Native { .. }) => true,
            (Self::Elsewhere { address, .. }, Self::Elsewhere { address: other, .. }) => address == other,
            (Self::Sandbox { .. } | Self::Elsewhere { .. } | Self::Native { .. }, _) => false,
        }
    }

    /// Where native workers are listed.
    #[must_use]
    pub fn manifest(&self) -> Option<&PathBuf> {
        match self {
            Self::Sandbox { manifest, .. } | Self::Elsewhere { manifest, .. } | Self::Native { manifest } => {
                manifest.as_ref()
            }
        }
    }
}
