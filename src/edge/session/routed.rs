//! What passes from here to the worker and back.

use std::sync::Arc;

use super::flights::Flight;
use crate::edge::{Answer, Call, Head, Permit, Version};
use crate::identity::Principal;
use crate::worker::Upstream;

/// A message with its one worker and, in the legacy era, its session.
pub(crate) struct Routed {
    pub(in crate::edge) head: Head,
    pub(in crate::edge) principal: Principal,
    pub(in crate::edge) permit: Permit,
    pub(in crate::edge) call: Call,
    pub(in crate::edge) upstream: Arc<Upstream>,
    pub(in crate::edge) session: Option<Session>,
    /// Of a request within a session of a worker that has none: how it can be cancelled. And of a session's own stream: how
    /// it is ended with its session.
    pub(in crate::edge) flight: Option<Flight>,
}

/// What a live public session means to the worker.
pub(crate) struct Session {
    pub(crate) version: Version,
    /// The worker's own id; a worker without sessions has none.
    pub(crate) upstream: Option<String>,
}

/// What comes back from the worker.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) opened: Option<Opened>,
}

/// A worker has answered `initialize` with a result.
pub(crate) struct Opened {
    pub(crate) version: Version,
    pub(crate) upstream: Option<String>,
}
