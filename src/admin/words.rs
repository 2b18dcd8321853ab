//! What an operator and a running service say to each other: its sandbox worker, for a reload its supervisor, and its edge
//! about sessions.
//!
//! The operator speaks first, with one [`Request`]. Most are answered by one [`Answer`]; [`Request::Run`] by
//! [`Answer::Running`] with the ends of the command's streams, and at its end by [`Answer::Ended`].

use std::path::PathBuf;
use std::time::Duration;

use kit::Tenant;
use sandbox::backend::Terminal;
use sandbox::settings::TenantSettings;
use serde::{Deserialize, Serialize};

use super::ending::Ending;
use crate::edge::{LiveSession, SessionName};

/// What an operator asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    Create {
        tenant: Tenant,
        pile: PileWish,
        settings: Box<TenantSettings>,
        /// Whether more disk may be promised than there is.
        overcommit: bool,
    },
    Destroy {
        tenant: Tenant,
        delete_pile: bool,
    },
    /// What there is of a tenant.
    Look {
        tenant: Tenant,
    },
    List,
    /// All that is known of a tenant that has a sandbox.
    Show {
        tenant: Tenant,
    },
    /// Decide some of a tenant's own settings, and forget those that are named.
    Set {
        tenant: Tenant,
        change: Box<TenantSettings>,
        forgotten: Vec<String>,
        overcommit: bool,
    },
    /// End a tenant's processes.
    Stop {
        tenant: Tenant,
    },
    /// Let nobody but the operator use a sandbox, or everybody again.
    Disable {
        tenant: Tenant,
        disabled: bool,
    },
    /// Open a sandbox as a client does.
    Attach {
        tenant: Tenant,
    },
    /// End the processes of every tenant.
    Clean,
    /// Try what can be proven of isolation on this host.
    Examine,
    /// Try to break what tenants are promised.
    Prove,
    /// Serve a tenant's tools over a socket that the answer brings, as a client's input and output.
    Speak {
        tenant: Tenant,
    },
    /// Read again what the service was started with. The supervisor answers this itself.
    Reload,
    /// Which public sessions live. The edge answers this.
    Sessions,
    /// End a public session. So does it this.
    EndSession {
        session: SessionName,
    },
    /// Start a command and hand its streams over.
    Run(Box<Run>),
}

/// A command of the operator's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub tenant: Tenant,
    /// Text for `/bin/sh`.
    pub command: String,
    /// Whether the tenant's profile is read first.
    pub login: bool,
    pub cwd: Option<String>,
    pub timeout: Option<Duration>,
    /// Whether standard input will be fed; otherwise there is nothing to read.
    pub stdin: bool,
    /// The terminal to make for it; pipes without one.
    pub terminal: Option<Terminal>,
}

/// What an operator says later, while a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Further {
    /// End it, with all that it started.
    Cancel,
}

/// Which pile a new tenant gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PileWish {
    Enforced,
    Unenforced,
    None,
    IfEnforceable,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Created {
        new: bool,
        pile: PileKept,
    },
    Destroyed,
    /// Whether it has a sandbox, and where its pile lies, which may outlive the sandbox.
    Found {
        sandbox: bool,
        pile: Option<PathBuf>,
    },
    Tenants(Vec<Sandbox>),
    Shown(Box<Shown>),
    Done,
    /// By this name clients hold it.
    Attached {
        session: String,
    },
    /// So many tenants had processes; of so many a service or a stop that was cut off had left something, which went;
    /// why those live on that another process holds; and those of whom it is not known that nothing is left, which services of before
    /// they were upgraded do not say.
    Cleaned {
        ended: usize,
        swept: usize,
        held: Vec<String>,
        #[serde(default)]
        failed: Vec<Unended>,
    },
    Examined(Vec<Check>),
    /// What is served otherwise from now on, and what would be after a restart.
    Reloaded {
        changed: Vec<String>,
        needs_restart: Vec<String>,
    },
    /// Some of the sessions; the rest follows where there are more.
    Sessions {
        sessions: Vec<LiveSession>,
        more: bool,
    },
    /// This one has ended, as it was before.
    SessionEnded(Box<LiveSession>),
    /// The command runs. With the descriptors of its streams: one of a terminal; else output, error, and input where
    /// it is fed.
    Running,
    /// What the operator is to know before that.
    Noted(String),
    Ended(Ending),
    Refused {
        why: Refusal,
        message: String,
    },
}

/// A sandbox of which it is not known that nothing of it is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unended {
    pub why: Refusal,
    pub message: String,
}

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The same in every version.
    pub id: String,
    pub result: Verdict,
    /// What was found.
    pub what: String,
    /// What makes it good, where it is not.
    pub fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// It works, with less than this program can promise elsewhere.
    Warn,
    Fail,
    /// A guarantee that an attempt could not break.
    Pass,
    /// A guarantee about which nothing is known.
    #[serde(rename = "not-tried")]
    NotTried,
}

/// How a tenant's pile is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PileKept {
    Enforced,
    Unenforced,
    None,
}

/// A tenant that has a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    pub tenant: Tenant,
    pub live: bool,
    pub disabled: bool,
    /// References that clients hold.
    pub handles: usize,
    /// Jobs that run now.
    pub jobs: usize,
    /// Why its record cannot be read, where that is so: then nobody knows whether it is disabled.
    pub unread: Option<String>,
}

/// All that is known of a tenant that has a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub sandbox: Sandbox,
    pub pile: PileKept,
    pub pile_folder: Option<PathBuf>,
    /// How the bound of its files is held: `hard`, `soft` or `none`.
    pub disk_quota: String,
    pub disk: Part,
    pub inodes: Part,
    /// Bytes of its pile.
    pub pile_bytes: u64,
    /// What was decided for it.
    pub own: TenantSettings,
    /// What was decided for all when that counted.
    pub common: TenantSettings,
    /// What holds for it; what nothing bounds is absent.
    pub in_force: TenantSettings,
}

/// What is used of what may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Absent where it is not counted.
    pub used: Option<u64>,
    pub bound: Option<u64>,
}

/// Why it was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    NoSuchTenant,
    NoSuchSession,
    NotEnforceable,
    /// There are settings that the backend has no way to keep.
    NotKept,
    NoIsolation,
    Disabled,
    /// What the service was started with cannot be taken up as it stands now; it goes on with what it had.
    Configuration,
    /// There is no worker now, and nothing was done.
    NoWorker,
    Failed,
}

impl Check {
    pub fn ok(id: impl Into<String>, what: impl Into<String>) -> Self {
        Self { id: id.into(), result: Verdict::Ok, what: what.into(), fix: None }
    }

    pub fn warn(id: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id: id.into(), result: Verdict::Warn, what: what.into(), fix: Some(fix.into()) }
    }

    pub fn pass(id: impl Into<String>, what: impl Into<String>) -> Self {
        Self { id: id.into(), result: Verdict::Pass, what: what.into(), fix: None }
    }

    /// With the reason.
    pub fn not_tried(id: impl Into<String>, why: impl Into<String>) -> Self {
        Self { id: id.into(), result: Verdict::NotTried, what: why.into(), fix: None }
    }

    /// With the reason, and how it is tried.
    pub fn untried(id: impl Into<String>, why: impl Into<String>, how: impl Into<String>) -> Self {
        Self { fix: Some(how.into()), ..Self::not_tried(id, why) }
    }

    pub fn fail(id: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id: id.into(), result: Verdict::Fail, what: what.into(), fix: Some(fix.into()) }
    }
}

impl Answer {
    pub fn refused(why: Refusal, message: impl Into<String>) -> Self {
        Self::Refused { why, message: message.into() }
    }
}
