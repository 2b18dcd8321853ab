//! What a worker is: a catalogue of tools as data, and one call.
//!
//! The transports ([`crate::http`], [`crate::stdio`]) speak MCP in both eras; a worker sees neither frames nor versions.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use rmcp::model::{self, CacheScope, Implementation, ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};

use crate::{Tenant, clock};

/// A future that a worker hands out; boxed, since workers are chosen at run time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A set of tools behind the edge or at the end of a pipe.
pub trait Worker: Send + Sync + 'static {
    /// What the worker offers; the same for every caller and for its whole life.
    fn catalogue(&self) -> &Catalogue;

    /// Runs one tool.
    ///
    /// The future is dropped when the caller cancels the call or, over HTTP, goes away. What must not end in the middle
    /// belongs to a task of the worker.
    fn call(&self, call: Call) -> Pending<'_, Result<Reply, Refused>>;

    /// Whom it refuses everything, so that an edge can tell them at its own door. It is asked often.
    fn barred(&self) -> Vec<Tenant> {
        Vec::new()
    }
}

/// One `tools/call`.
#[derive(Debug)]
pub struct Call {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub caller: Caller,
    /// Present when the client asked to be told of progress.
    pub progress: Option<Progress>,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The one person at the other end of a pipe.
    Local,
    /// The edge, which has shown the internal secret.
    Edge {
        /// On whose behalf; the edge tells it to the workers that serve several tenants.
        tenant: Option<Tenant>,
        /// The edge's name for this exchange, for log lines.
        reference: Option<String>,
    },
}

/// What a tool answers. A tool's failure is a reply too: [`Reply::failure`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub content: Vec<Content>,
    pub failed: bool,
    pub structured: Option<Value>,
    pub meta: Option<Map<String, Value>>,
}

impl Reply {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }

    /// The tool ran, or tried to, and this is what the model should read about it.
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self { failed: true, ..Self::text(text) }
    }

    #[must_use]
    pub fn with_structured(self, value: Value) -> Self {
        Self { structured: Some(value), ..self }
    }

    #[must_use]
    pub fn with_meta(self, meta: Map<String, Value>) -> Self {
        Self { meta: Some(meta), ..self }
    }
}

/// One block of a reply. Binary data is base64 text already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Image { base64: String, mime: String },
    Audio { base64: String, mime: String },
    Blob { base64: String, mime: String, uri: String },
    Document { text: String, mime: String, uri: String },
}

/// A call that is no call: the client's program is at fault, not the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("Unknown tool: {0}")]
    UnknownTool(String),
    #[error("{0}")]
    InvalidArguments(String),
}

/// What a worker says about itself, in the order and form in which clients get it.
#[derive(Clone, Debug)]
pub struct Catalogue {
    server: Implementation,
    instructions: Option<String>,
    tools: Vec<model::Tool>,
    fresh: Duration,
    sharing: Sharing,
}

/// Who may keep a copy of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Every caller sees the same.
    Public,
    /// It says something about the one caller.
    Private,
}

/// Why a catalogue is not one.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("the catalogue's tools cannot be read")]
    Malformed(#[from] serde_json::Error),
    #[error("two tools are called `{0}`")]
    Twice(String),
}

impl Catalogue {
    /// A catalogue of the tools in `tools`, an array as `tools/list` would show it.
    ///
    /// # Errors
    /// When an entry is not a tool, or two have one name.
    pub fn new(name: &str, version: &str, tools: Value) -> Result<Self, CatalogueError> {
        let tools: Vec<model::Tool> = serde_json::from_value(tools)?;
        for (index, tool) in tools.iter().enumerate() {
            if tools.iter().skip(index + 1).any(|other| other.name == tool.name) {
                return Err(CatalogueError::Twice(tool.name.to_string()));
            }
        }
        Ok(Self {
            server: Implementation::new(name, version),
            instructions: None,
            tools,
            fresh: Duration::ZERO,
            sharing: Sharing::Private,
        })
    }

    #[must_use]
    pub fn with_title(self, title: &str) -> Self {
        Self { server: self.server.with_title(title), ..self }
    }

    #[must_use]
    pub fn with_instructions(self, instructions: impl Into<String>) -> Self {
        Self { instructions: Some(instructions.into()), ..self }
    }

    /// How long clients may keep it, and whether they may share it.
    #[must_use]
    pub fn kept_for(self, fresh: Duration, sharing: Sharing) -> Self {
        Self { fresh, sharing, ..self }
    }

    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The tools as a client sees them.
    ///
    /// # Errors
    /// Never in practice: what was read from JSON can be written as JSON.
    pub fn as_json(&self) -> Result<Value, CatalogueError> {
        Ok(serde_json::to_value(&self.tools)?)
    }

    pub(crate) fn server(&self) -> &Implementation {
        &self.server
    }

    pub(crate) fn tools(&self) -> &[model::Tool] {
        &self.tools
    }

    pub(crate) fn fresh_milliseconds(&self) -> u64 {
        u64::try_from(self.fresh.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn scope(&self) -> CacheScope {
        match self.sharing {
            Sharing::Public => CacheScope::Public,
            Sharing::Private => CacheScope::Private,
        }
    }
}

/// The client's wish to hear how a call gets on.
#[derive(Debug)]
pub struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    told: u32,
    last: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token, told: 0, last: None }
    }

    /// When the next report may go out; earlier ones are dropped.
    #[must_use]
    pub fn due(&self) -> Instant {
        self.last.map_or_else(clock::now, |last| last + BETWEEN_REPORTS)
    }

    /// Tells the client one more step with a line for people, at most twice a second.
    ///
    /// A client that does not read holds this up; dropping the future loses the report and nothing else.
    pub async fn report(&mut self, message: &str) {
        let now = clock::now();
        if self.last.is_some_and(|last| now < last + BETWEEN_REPORTS) {
            return;
        }
        self.last = Some(now);
        self.told = self.told.saturating_add(1);
        let step = ProgressNotificationParam::new(self.token.clone(), f64::from(self.told));
        // A client that is gone will be noticed by the transport, which drops the call.
        let _ = self.peer.notify_progress(step.with_message(message)).await;
    }
}

/// More would only be noise to a person and work to a client.
const BETWEEN_REPORTS: Duration = Duration::from_millis(500);
