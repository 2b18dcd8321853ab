//! Tenants that somebody else's authorization server has let in here.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use kit::Tenant;

/// Those that were seen since this edge began. None of them was made here, so that each is worth a word once.
#[derive(Default)]
pub(super) struct Met(Mutex<HashSet<Tenant>>);

impl Met {
    /// Whether it was not seen before; from now on it was.
    pub(super) fn is_first(&self, tenant: &Tenant) -> bool {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if met.contains(tenant) {
            return false;
        }
        if met.len() >= MOST {
            // Whoever comes again is told of once more.
            met.clear();
        }
        met.insert(tenant.clone())
    }

    /// It was not told of, after all.
    pub(super) fn forget(&self, tenant: &Tenant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant);
    }
}

/// More than one edge serves.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::{MOST, Met};

    #[test]
    fn a_tenant_is_new_once_and_again_when_too_many_came_since() {
        let (met, tenant) = (Met::default(), |name: &str| Tenant::parse(name).expect("a tenant"));
        assert!(met.is_first(&tenant("alice")) && !met.is_first(&tenant("alice")));
        met.forget(&tenant("alice"));
        assert!(met.is_first(&tenant("alice")));
        for number in 1..MOST {
            assert!(met.is_first(&tenant(&format!("t{number}"))));
        }
        assert!(!met.is_first(&tenant("alice")), "there is room for so many");
        assert!(met.is_first(&tenant("one-more")) && met.is_first(&tenant("alice")));
    }
}
