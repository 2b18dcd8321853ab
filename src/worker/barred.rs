//! Tenants whose sandbox their operator has disabled.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use kit::Tenant;

/// Who is to be refused, as the worker says; clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Barred(Arc<RwLock<HashSet<Tenant>>>);

impl Barred {
    /// These from now on, and nobody else.
    pub fn set(&self, tenants: impl IntoIterator<Item = Tenant>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tenants.into_iter().collect();
    }

    #[must_use]
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(tenant)
    }
}
