//! Bytes of the budget that are taken.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use kit::Tenant;

use crate::edge::Cause;

use super::{Own, Slots};

/// Bytes of the budget, those of one body or of an answer that is held whole, given back when dropped.
pub(crate) struct Reserved {
    slots: Arc<Slots>,
    tenant: Tenant,
    bytes: usize,
}

/// Bytes with their share of the budget.
struct Budgeted {
    bytes: Bytes,
    _reserved: Reserved,
}

impl Reserved {
    pub(super) fn nothing(slots: &Arc<Slots>, tenant: &Tenant) -> Self {
        Self { slots: Arc::clone(slots), tenant: tenant.clone(), bytes: 0 }
    }

    /// Takes `more` bytes of the budget on top of what is held.
    pub(in crate::edge) fn grow(&mut self, more: usize) -> Result<(), Cause> {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (limits, whole_body) = (&taken.most, taken.whole_body);
        let own = taken.own(&self.tenant);
        let bytes = own.bytes.saturating_add(more);
        let share = limits.most_body_bytes_per_tenant(whole_body);
        if bytes > share {
            return Err(Cause::TenantFull { most: share });
        }
        // A body that comes in pieces stays its tenant's only one, and is not cut off where the kept part begins.
        let only = own.bytes == self.bytes;
        let most = if only { limits.most_body_bytes } else { limits.common_body_bytes(whole_body) };
        let wanted = taken.bytes.saturating_add(more);
        if wanted > most {
            return Err(Cause::EdgeBusy);
        }
        taken.bytes = wanted;
        taken.keep(&self.tenant, Own { bytes, ..own });
        self.bytes += more;
        Ok(())
    }

    /// Holds so many bytes from now on, where it held fewer.
    pub(in crate::edge) fn reach(&mut self, bytes: usize) -> Result<(), Cause> {
        if bytes > self.bytes { self.grow(bytes - self.bytes) } else { Ok(()) }
    }

    /// A part of what is held, of its own from now on.
    pub(in crate::edge) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { slots: Arc::clone(&self.slots), tenant: self.tenant.clone(), bytes }
    }

    /// The bytes that this is held for, and held until the last reference to them goes.
    pub(in crate::edge) fn around(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Budgeted { bytes, _reserved: self })
    }
}

impl AsRef<[u8]> for Budgeted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.own(&self.tenant);
        taken.bytes -= self.bytes;
        taken.keep(&self.tenant, Own { bytes: own.bytes - self.bytes, ..own });
    }
}
