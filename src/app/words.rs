//! What the supervisor and its children say to each other.
//!
//! The first line down is the whole of what a child must know; the first line up is that it is ready, or why not. A
//! child never reads the environment, and the edge opens no path of the state.

mod changes;

use std::net::SocketAddr;
use std::time::Duration;

use kit::{Secret, Tenant};
use sandbox::backend::Kind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::acme;
use crate::edge::SessionKey;
use crate::identity::CredentialId;
use crate::oauth::Settings;
use crate::oauth::keeper::Unkept;
use crate::oauth::state::{Change, Outcome};
use crate::outbound::Trust;
use crate::store::Loose;
use crate::worker::Terms;

/// From the supervisor to the edge.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToEdge {
    /// With these descriptors, in this order.
    Begin { edge: Box<BeginEdge>, with: Vec<Handed> },
    /// Whether the sandbox worker accepts calls.
    Worker { up: bool },
    /// The file that was asked for, as a descriptor; without one there is no such file.
    Opened { id: u64 },
    /// The file that was asked for cannot be opened.
    NotOpened { id: u64, why: String },
    /// What became of a change of the OAuth state.
    Granted { id: u64, done: Result<Outcome, Unkept> },
    /// What an ACME authority gave is kept, or why not.
    AcmeKept { fault: Option<String> },
    /// Serve this from now on; what is under way goes on.
    Reload(Box<BeginEdge>),
    /// Say that you live.
    Alive { round: u64 },
    /// The file that the record of calls goes on in, as a descriptor.
    AuditTurned,
    /// There is none; it goes on in the one that it is in.
    AuditNotTurned { why: String },
    /// The file of the record of calls was moved or deleted; it goes on in this one, as a descriptor.
    AuditDisplaced,
    /// The same, and no other can be had yet.
    AuditNowhere { why: String },
    /// What whoever looks at the service should know, all of it.
    Troubles { what: Vec<String> },
    /// With the connection of an operator, who is to be answered there.
    Operate { id: u64 },
    /// These tenants alone are disabled, as the sandbox worker says that is a child beside it.
    Disabled { tenants: Vec<Tenant> },
    /// Stop accepting, let calls finish, end.
    Stop,
}

/// What a descriptor that an edge begins with is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handed {
    /// One of both files with ended sessions, opened for reading and appending.
    Tombstones,
    /// The listening socket at which the operator's monitoring asks.
    Monitoring,
    /// The listening socket at which plain HTTP is redirected.
    Redirect,
    /// The listening socket at which tokens alone are known.
    Bearer,
    /// The file of the record of calls, opened for reading and appending.
    Audit,
    /// The one before it, for reading.
    AuditBefore,
}

/// From the edge to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromEdge {
    Ready,
    /// It lives.
    Alive {
        round: u64,
    },
    /// It has heard whether the sandbox worker accepts calls.
    Sees {
        worker: bool,
    },
    Fault(String),
    /// It serves what it was told to take up last, or why it goes on with what it had.
    Reloaded {
        fault: Option<String>,
    },
    /// Open a file again.
    Open {
        id: u64,
        file: Stored,
    },
    /// Change the OAuth state.
    Grant {
        id: u64,
        change: Box<Change>,
    },
    /// Keep this of an ACME authority.
    KeepAcme(Box<acme::Kept>),
    /// Put the file of the record of calls aside and open the next one.
    TurnAudit,
    /// The conversation with an operator is over.
    Done {
        id: u64,
    },
    /// These were used in this hour since the Unix epoch.
    Used {
        ids: Vec<CredentialId>,
        hour: u64,
    },
}

/// A file that the edge reads and may not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stored {
    Credentials,
    OAuth,
}

/// All that an edge must know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginEdge {
    pub verbosity: String,
    pub limits: crate::edge::Config,
    pub session_keys: Keys,
    /// What messages call the credential store.
    pub store: String,
    /// What to make of a store that others may open.
    pub loose: Loose,
    /// Where clients log in themselves.
    pub oauth: Option<OAuth>,
    /// Somebody else's authorization server, whose tokens count too.
    pub external: Option<crate::oauth::issuer::Settings>,
    /// Whom to believe when other machines are asked; nobody is where there is nothing to ask.
    pub trust: Option<Trust>,
    /// The backend that a credential of the original's form must name.
    pub backend: String,
    pub sandbox: Option<Upstream>,
    /// Whether that is another service's, which has to be asked whom it bars.
    pub asks_sandbox: bool,
    pub native: Vec<Native>,
    /// What the listener speaks TLS with, where it does; the first serves whoever names none of them.
    pub tls: Vec<Pem>,
    /// As PEM text, the authorities whose certificates clients must show.
    pub client_ca: Option<String>,
    /// The authority that gives another by itself.
    pub acme: Option<BeginAcme>,
    /// How calls are recorded, where they are.
    pub audit: Option<crate::audit::Terms>,
}

/// What an edge must know of logins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OAuth {
    /// What messages call the state.
    pub store: String,
    /// What to make of a state that others may open.
    pub loose: Loose,
    /// Tokens are for its public URL, and for nothing else.
    pub settings: Settings,
}

/// What an edge must know of an ACME authority.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginAcme {
    pub settings: acme::Settings,
    pub kept: Box<acme::Kept>,
    /// Whom the authority itself is believed by.
    pub trust: Trust,
}

/// A certificate chain and its key, as PEM text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pem {
    /// What messages call it: the file that the certificate came from.
    pub name: String,
    pub certificates: String,
    #[serde(serialize_with = "expose", deserialize_with = "conceal")]
    pub key: Secret,
}

/// A worker's address and what it wants to hear.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upstream {
    pub address: SocketAddr,
    #[serde(serialize_with = "expose", deserialize_with = "conceal")]
    pub bearer: Secret,
    /// Whether it is there already; it is told later when that changes.
    pub up: bool,
    pub terms: Terms,
}

/// A tenant's own worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Native {
    pub tenant: Tenant,
    pub worker: Upstream,
}

/// The keys of public session ids, the oldest first. They do not print themselves.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys(pub Vec<Key>);

/// A key that opens whatever it sealed, and seals from a time on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub bytes: [u8; 32],
    /// Since the Unix epoch.
    pub seals_from: Duration,
}

/// From the supervisor to the sandbox worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// With the descriptor of the state's lock: the state stays taken until the worker has ended too.
    Begin(Box<BeginWorker>),
    /// With the connection of an operator, who is to be answered there.
    Operate { id: u64 },
    /// Look at your tenants, and say that you live.
    Alive { round: u64 },
    /// End every tenant's processes, and then this one.
    Stop,
}

/// From the sandbox worker to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    Ready {
        tenants: usize,
    },
    /// These tenants alone are disabled.
    Disabled {
        tenants: Vec<Tenant>,
    },
    /// It is still starting, since there are many tenants or their host is slow.
    Coming,
    /// The host cannot isolate; another start would not change that.
    NoIsolation(String),
    Fault(String),
    /// It lives, and can look at its tenants.
    Alive {
        round: u64,
    },
    /// The conversation with an operator is over.
    Done {
        id: u64,
    },
}

/// All that a sandbox worker must know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginWorker {
    pub verbosity: String,
    pub state: std::path::PathBuf,
    /// What isolates tenants.
    pub kind: Kind,
    #[serde(serialize_with = "expose", deserialize_with = "conceal")]
    pub secret: Secret,
}

/// Any message downwards.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Down {
    Edge(ToEdge),
    Worker(ToWorker),
}

impl Keys {
    /// One that seals at once.
    #[must_use]
    pub fn one(bytes: [u8; 32]) -> Self {
        Self(vec![Key { bytes, seals_from: Duration::ZERO }])
    }

    /// What the edge seals and opens with; none where there is no key.
    #[must_use]
    pub fn ring(&self) -> Option<SessionKey> {
        let (oldest, later) = self.0.split_first()?;
        let oldest = SessionKey::new(oldest.bytes);
        Some(later.iter().fold(oldest, |ring, key| ring.followed_by(key.bytes, key.seals_from)))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

fn expose<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(to)
}

fn conceal<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
    String::deserialize(from).map(Secret::new)
}
