//! The workers that stand behind the edge: which one a tenant reaches, where it listens, and what opens it.
//!
//! A tenant reaches exactly one worker, decided by its credential's catalogue; a native tenant without a worker gets
//! an error and never the sandbox. Beside it: the children this program starts, and how they are kept alive.

pub mod address;
pub mod barred;
pub mod check;
pub mod child;
pub mod endpoint;
pub mod entry;
pub mod eras;
pub mod handoff;
pub mod health;
pub mod lint;
pub mod manifest;
pub mod probe;
pub mod restart;
pub mod terms;
pub mod token_file;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kit::{Secret, Tenant};

use crate::identity::{Catalogue, Principal};

pub use address::Loopback;
pub use barred::Barred;
pub use endpoint::Endpoint;
pub use eras::Eras;
pub use health::Health;
pub use terms::Terms;

/// Which worker each tenant reaches.
#[derive(Debug, Default)]
pub struct Routes {
    sandbox: Option<Arc<Upstream>>,
    native: HashMap<Tenant, Arc<Upstream>>,
}

/// One worker as the edge sees it.
#[derive(Debug)]
pub struct Upstream {
    /// Stands inside sealed session ids, so that a session never moves to another worker.
    pub name: String,
    pub address: Loopback,
    /// What the worker wants as `Authorization: Bearer`; never a client's token.
    pub bearer: Secret,
    /// Whether the worker is ours and is told the tenant; a native worker serves one tenant and is told nothing.
    pub sends_tenant: bool,
    pub terms: Terms,
    pub presence: Presence,
    /// Of the worker that tenants share, whom it would refuse all that they ask.
    pub barred: Barred,
    pub eras: Eras,
    pub health: Health,
}

/// Whether a worker may be called, as whoever watches it says; clones share the answer.
///
/// While no process accepts on a listener that its supervisor holds, connections succeed and wait in the kernel, so
/// a refused connection cannot tell the edge that the worker is down.
#[derive(Clone, Debug)]
pub struct Presence(Arc<AtomicBool>);

/// A tenant without a worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tenant `{tenant}` has no {} worker", match catalogue { Catalogue::Sandbox => "sandbox", Catalogue::Native => "native" })]
pub struct Unmapped {
    tenant: Tenant,
    catalogue: Catalogue,
}

impl Routes {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every principal of the sandbox catalogue reach `worker`.
    #[must_use]
    pub fn with_sandbox(mut self, worker: impl Into<Arc<Upstream>>) -> Self {
        self.sandbox = Some(worker.into());
        self
    }

    /// Lets `tenant` reach `worker` when its credential says native.
    #[must_use]
    pub fn with_native(mut self, tenant: Tenant, worker: impl Into<Arc<Upstream>>) -> Self {
        self.native.insert(tenant, worker.into());
        self
    }

    /// Every worker once.
    pub fn workers(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.sandbox.iter().chain(self.native.values())
    }

    /// The workers that a credential of the tenant's may lead to.
    pub(crate) fn of_tenant(&self, tenant: &Tenant) -> impl Iterator<Item = &Upstream> {
        self.sandbox.iter().chain(self.native.get(tenant)).map(|worker| &**worker)
    }

    /// Every worker with the tenant that has it to itself; the sandbox is everybody's.
    pub fn served(&self) -> impl Iterator<Item = (Option<&Tenant>, &Arc<Upstream>)> {
        let native = self.native.iter().map(|(tenant, worker)| (Some(tenant), worker));
        self.sandbox.iter().map(|worker| (None, worker)).chain(native)
    }

    /// The one worker that `principal` reaches.
    ///
    /// # Errors
    /// When its catalogue has no worker for it; there is no fallback to the other catalogue.
    pub fn upstream(&self, principal: &Principal) -> Result<&Arc<Upstream>, Unmapped> {
        let found = match principal.catalogue() {
            Catalogue::Sandbox => self.sandbox.as_ref(),
            Catalogue::Native => self.native.get(principal.tenant()),
        };
        found.ok_or_else(|| Unmapped { tenant: principal.tenant().clone(), catalogue: principal.catalogue() })
    }
}

impl Upstream {
    /// The worker that several tenants share and that is told which one is calling.
    #[must_use]
    pub fn sandbox(address: Loopback, bearer: Secret) -> Self {
        Self { name: "sandbox".to_owned(), sends_tenant: true, ..Self::native(address, bearer) }
    }

    /// One tenant's own worker.
    #[must_use]
    pub fn native(address: Loopback, bearer: Secret) -> Self {
        Self {
            name: format!("native:{address}"),
            address,
            bearer,
            sends_tenant: false,
            terms: Terms::default(),
            presence: Presence::up(),
            barred: Barred::default(),
            eras: Eras::default(),
            health: Health::default(),
        }
    }

    /// Whether it is believed to be there.
    ///
    /// The supervisor's word counts for the sandbox worker, which nobody probes. A native worker is there once it has
    /// answered, until a connection is refused or it comes back without an era that it had.
    #[must_use]
    pub fn is_believed_up(&self) -> bool {
        self.presence.is_up() && (self.sends_tenant || self.health.is_well())
    }

    /// What logs and metrics call it: as its operator does, else by its address.
    #[must_use]
    pub fn label(&self) -> &str {
        self.terms.name.as_deref().unwrap_or(&self.name)
    }
}

impl Presence {
    /// A worker that is called until someone says otherwise.
    #[must_use]
    pub fn up() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub fn set(&self, up: bool) {
        self.0.store(up, Ordering::Relaxed);
    }

    #[must_use]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Loopback, Routes, Upstream};
    use crate::identity::{Catalogue, Principal};
    use kit::{Secret, Tenant};

    fn worker(name: &str, port: u16) -> Upstream {
        let address = Loopback::parse(&format!("127.0.0.1:{port}")).expect("a loopback address");
        Upstream { name: name.to_owned(), ..Upstream::native(address, Secret::new("x".repeat(32))) }
    }

    #[test]
    fn a_native_tenant_without_a_worker_never_falls_back_to_the_sandbox() {
        let routes = Routes::new()
            .with_sandbox(worker("sandbox", 1))
            .with_native(Tenant::parse("alice").expect("a tenant"), worker("native", 2));
        let reached = |tenant: &str, catalogue| {
            routes.upstream(&Principal::for_test(tenant, catalogue)).map(|found| found.name.clone()).ok()
        };
        assert_eq!(reached("alice", Catalogue::Native).as_deref(), Some("native"));
        assert_eq!(reached("alice", Catalogue::Sandbox).as_deref(), Some("sandbox"));
        assert_eq!(reached("bob", Catalogue::Native), None);
    }
}
