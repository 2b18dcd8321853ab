//! What the supervisor knows and whoever looks at the service should.

use std::sync::{Arc, Mutex, PoisonError};

/// In its words; each telling replaces the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubles(Arc<Mutex<Vec<String>>>);

impl Troubles {
    pub(super) fn set(&self, what: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
