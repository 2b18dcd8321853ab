//! How often a tenant may call.
//!
//! As many as a tenant may have requests are refused at once, those beyond them with patience.

use std::time::Duration;

use kit::Tenant;

use crate::buckets::Buckets;
use crate::edge::gate::Gate;
use crate::edge::patience::Patience;
use crate::edge::{Authenticated, Cause, Head, Rates, Rejection, RequestBody, Verb};
use crate::identity::Principal;

/// The third gate.
pub(crate) struct Rate {
    tenants: Buckets<Tenant>,
    patience: Patience<Tenant>,
}

/// A request within its tenant's rate, for something that the edge serves.
pub(crate) struct Paced {
    head: Head,
    body: RequestBody,
    verb: Verb,
    principal: Principal,
}

impl Rate {
    pub(crate) fn new(rates: &Rates) -> Self {
        let each = Duration::from_secs(1) / rates.tenant_per_second.max(1);
        let buckets = || Buckets::new(each, rates.tenant_burst, rates.most_tenants);
        Self { tenants: buckets(), patience: Patience::new(buckets(), rates.most_held_back) }
    }

    /// Tenants that are remembered.
    pub(crate) fn tenants(&self) -> usize {
        self.tenants.len()
    }
}

impl Gate for Rate {
    type Request = Authenticated;
    type Passed = Paced;

    async fn check(&self, request: Authenticated) -> Result<Paced, Rejection> {
        let tenant = request.principal().tenant().clone();
        if let Err(empty) = self.tenants.take(tenant.clone()) {
            drop(request);
            self.patience.wait(tenant).await;
            return Err(Cause::TooManyRequests { again: empty.again }.into());
        }
        let (bounded, principal) = request.into_parts();
        // Only now may the caller learn that there is nothing here.
        let (head, body, verb) = bounded.settle()?;
        Ok(Paced { head, body, verb, principal })
    }
}

impl Paced {
    pub(in crate::edge) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(in crate::edge) fn into_parts(self) -> (Head, RequestBody, Verb, Principal) {
        (self.head, self.body, self.verb, self.principal)
    }

    /// A request that has passed all gates so far.
    #[cfg(test)]
    pub(crate) fn for_test(request: http::Request<impl Into<bytes::Bytes>>, principal: Principal) -> Self {
        let verb = match *request.method() {
            http::Method::POST => Verb::Post,
            http::Method::GET => Verb::Get,
            _ => Verb::Delete,
        };
        let (head, body) = crate::edge::Accepted::for_test(request).into_parts();
        Self { head, body, verb, principal }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::Rate;
    use crate::edge::gate::Gate;
    use crate::edge::{Authenticated, Cause, Rates};

    async fn check(rate: &Rate, tenant: &str, path: &str) -> Result<(), Cause> {
        let request = Authenticated::for_test(tenant, path);
        rate.check(request).await.map(|_| ()).map_err(|rejection| rejection.cause)
    }

    #[tokio::test]
    async fn a_tenant_gets_its_burst_and_others_keep_theirs() {
        let rate = Rate::new(&Rates { tenant_per_second: 1, tenant_burst: 3, ..Rates::default() });
        for _ in 0..3 {
            assert_eq!(check(&rate, "alice", "/mcp").await, Ok(()));
        }
        assert!(matches!(check(&rate, "alice", "/mcp").await, Err(Cause::TooManyRequests { .. })));
        assert_eq!(check(&rate, "bob", "/mcp").await, Ok(()));
    }

    #[tokio::test]
    async fn who_is_refused_again_and_again_is_told_later() {
        let rate = Rate::new(&Rates { tenant_per_second: 1, tenant_burst: 2, ..Rates::default() });
        let mut told = Vec::new();
        for _ in 0..5 {
            // No time at all: what is known at once is told, and nothing else.
            told.push(timeout(Duration::ZERO, check(&rate, "alice", "/mcp")).await.is_ok());
        }
        assert_eq!(told, [true, true, true, true, false], "two pass, two are refused at once");
        assert!(
            matches!(check(&rate, "alice", "/mcp").await, Err(Cause::TooManyRequests { .. })),
            "and told in the end"
        );
        assert_eq!(timeout(Duration::ZERO, check(&rate, "bob", "/mcp")).await, Ok(Ok(())), "nobody else waits");
    }

    #[tokio::test]
    async fn asking_for_nothing_is_counted_too() {
        let rate = Rate::new(&Rates { tenant_per_second: 1, tenant_burst: 1, ..Rates::default() });
        assert_eq!(check(&rate, "alice", "/nothing").await, Err(Cause::NoSuchPath));
        assert!(matches!(check(&rate, "alice", "/nothing").await, Err(Cause::TooManyRequests { .. })));
    }
}
