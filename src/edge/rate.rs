//! How often a tenant may call.
//!
//! A refusal is work too, and who is refused can ask again at once. As many as a tenant may have requests are told at
//! once; those beyond them are held back, so that a connection of a flood costs a few refusals a second and not
//! thousands, which other tenants would feel, and each for another while, so that they do not come back all at once.
//! Nothing of the request is kept meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kit::Tenant;
use tokio::time::sleep;

use crate::buckets::Buckets;
use crate::edge::gate::Gate;
use crate::edge::{Authenticated, Cause, Head, Rates, Rejection, RequestBody, Verb};
use crate::identity::Principal;

/// The third gate.
pub(crate) struct Rate {
    tenants: Buckets<Tenant>,
    /// Refusals that are told at once.
    refusals: Buckets<Tenant>,
    /// How many were held back.
    held_back: AtomicU32,
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
        Self { tenants: buckets(), refusals: buckets(), held_back: AtomicU32::new(0) }
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
            // Dropped here, the client has gone and nobody is to be told.
            if self.refusals.take(tenant).is_err() {
                sleep(held_back(self.held_back.fetch_add(1, Ordering::Relaxed))).await;
            }
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

/// For how long the refusal of this number is held back: 125 to 375 ms, spread evenly over any few in a row. Below the
/// least that `Retry-After` says, which is in whole seconds: who waits as told never meets it.
fn held_back(number: u32) -> Duration {
    // The golden ratio of a full turn.
    let turn = f64::from(number.wrapping_mul(0x9e37_79b9)) / f64::from(u32::MAX);
    Duration::from_millis(125) + Duration::from_millis(250).mul_f64(turn)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{Rate, held_back};
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

    #[test]
    fn refusals_are_held_back_each_for_another_while() {
        let mut whiles: Vec<_> = (0..64).map(held_back).collect();
        whiles.sort_unstable();
        assert!(whiles[0] >= Duration::from_millis(125) && whiles[63] <= Duration::from_millis(375), "{whiles:?}");
        assert!(whiles.windows(2).all(|pair| pair[1] - pair[0] < Duration::from_millis(12)), "no gap: {whiles:?}");
        assert!(whiles.windows(2).all(|pair| pair[1] > pair[0]), "and no two at once: {whiles:?}");
    }

    #[tokio::test]
    async fn asking_for_nothing_is_counted_too() {
        let rate = Rate::new(&Rates { tenant_per_second: 1, tenant_burst: 1, ..Rates::default() });
        assert_eq!(check(&rate, "alice", "/nothing").await, Err(Cause::NoSuchPath));
        assert!(matches!(check(&rate, "alice", "/nothing").await, Err(Cause::TooManyRequests { .. })));
    }
}
