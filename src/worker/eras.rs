//! What is known of the protocol revisions that a worker speaks.

use std::sync::{Arc, PoisonError, RwLock};

/// What was found out last; clones share it. Until something is known, a message goes to the worker in its own era.
#[derive(Clone, Debug, Default)]
pub struct Eras(Arc<RwLock<Option<Found>>>);

/// A worker's answers to the questions of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// None: it has no `initialize`.
    pub legacy: Option<Legacy>,
    /// The modern revisions that it names, none if it has no `server/discover`.
    pub modern: Vec<String>,
}

/// How a worker behaves in the era of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legacy {
    /// Whether it answers `initialize` with a session id of its own.
    pub sessions: bool,
    /// The revision that it agrees on when it is offered the newest one.
    pub version: String,
}

impl Eras {
    #[must_use]
    pub fn found(&self) -> Option<Found> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn learn(&self, found: Found) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    /// Whether it is known to speak the era of sessions alone.
    #[must_use]
    pub fn is_legacy_only(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(Found::is_legacy_only)
    }
}

impl Found {
    #[must_use]
    pub fn is_legacy_only(&self) -> bool {
        self.legacy.is_some() && self.modern.is_empty()
    }

    /// No client of the era of sessions can be served by it.
    #[must_use]
    pub fn is_modern_only(&self) -> bool {
        self.legacy.is_none() && !self.modern.is_empty()
    }
}
