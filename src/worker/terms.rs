//! What an operator says of a worker beyond where it is: its name, its clocks, and what the edge may do for it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;

/// The terms that one worker is served on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// For logs and metrics, in place of the address.
    pub name: Option<String>,
    pub path: Endpoint,
    pub bridge: Bridge,
    /// Whether the worker's lists are the same for everybody, so that answers that say `public` may stay so.
    pub shared_catalogue: bool,
    pub bounds: Bounds,
}

/// What becomes of a request of the modern era for a worker that knows only sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// It is refused in the words on which clients that know both eras fall back to `initialize`.
    #[default]
    Refuse,
    /// The edge keeps sessions with the worker and translates.
    Modern,
}

/// The clocks and sizes of one exchange with a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    pub connect: Duration,
    /// From the request to the head of its answer. The longest command of a sandbox runs 30 minutes.
    pub head: Duration,
    /// Between two bytes of an answer.
    pub idle: Duration,
    /// For a whole call. A stream that has no end of its own has no such clock.
    pub total: Duration,
    /// Bytes of an answer that is one JSON text; event streams have no such bound.
    pub most_reply_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head: Duration::from_secs(31 * 60),
            idle: Duration::from_secs(31 * 60),
            total: Duration::from_secs(3600),
            // Four times what the original let through, which held each one in memory.
            most_reply_bytes: 32 << 20,
        }
    }
}
