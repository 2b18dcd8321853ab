//! How much may be under way at once.
//!
//! Slots for each tenant and for all, and a budget of bytes for request bodies. What does not fit is refused at once:
//! nothing queues here. The slot lives in the answer's body, so a stream counts until its last byte; when a legacy
//! client leaves, the rest of the exchange keeps a share of the same permit until the worker is done.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use kit::Tenant;
use pin_project::pin_project;
use tower::{Layer, Service};

use crate::edge::{Answer, AnswerBody, Cause, Exchanges, Head, Paced, Rejection, RequestBody, Verb};
use crate::identity::Principal;

/// The fourth stage: it also touches the answer, to put the permit into its body.
#[derive(Clone)]
pub(crate) struct Admit(Arc<Slots>);

/// A request that may be served now.
pub(crate) struct Admitted {
    paced: Paced,
    permit: Permit,
}

/// The right to one exchange, given back when its last holder ends.
#[derive(Clone)]
pub(crate) struct Permit(Arc<Held>);

/// Bytes of the budget, given back when dropped.
pub(crate) struct Reserved {
    slots: Arc<Slots>,
    bytes: usize,
}

pub(crate) struct Slots {
    most: Exchanges,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    // An entry exists only while its tenant holds a slot, so the table is as bounded as the slots are.
    by_tenant: HashMap<Tenant, usize>,
    bytes: usize,
}

struct Held {
    slots: Arc<Slots>,
    tenant: Tenant,
}

#[derive(Clone)]
pub(crate) struct Admitting<S> {
    slots: Arc<Slots>,
    inner: S,
}

/// An answer's body with the permit of its exchange inside.
#[pin_project]
struct Permitted {
    #[pin]
    body: AnswerBody,
    // Given back with the last byte and not with the last reference: a kept connection may hold the body for longer.
    permit: Option<Permit>,
}

impl Admit {
    pub(crate) fn new(most: Exchanges) -> Self {
        Self(Arc::new(Slots { most, taken: Mutex::default() }))
    }

    fn check(slots: &Arc<Slots>, request: Paced) -> Result<Admitted, Rejection> {
        let permit = slots.take(request.principal().tenant())?;
        Ok(Admitted { paced: request, permit })
    }

    /// Exchanges under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Slots {
    fn take(self: &Arc<Self>, tenant: &Tenant) -> Result<Permit, Cause> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.by_tenant.get(tenant).copied().unwrap_or(0);
        if own >= self.most.most_per_tenant {
            return Err(Cause::TenantBusy { most: self.most.most_per_tenant });
        }
        if taken.all >= self.most.most {
            return Err(Cause::EdgeBusy);
        }
        taken.all += 1;
        taken.by_tenant.insert(tenant.clone(), own + 1);
        Ok(Permit(Arc::new(Held { slots: Arc::clone(self), tenant: tenant.clone() })))
    }
}

impl Permit {
    /// An empty share of the byte budget.
    pub(in crate::edge) fn reserve_nothing(&self) -> Reserved {
        Reserved { slots: Arc::clone(&self.0.slots), bytes: 0 }
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        let slots = Arc::new(Slots { most: Exchanges::default(), taken: Mutex::default() });
        slots.take(&Tenant::parse("alice").expect("a tenant")).expect("a free slot")
    }
}

impl Reserved {
    /// Takes `more` bytes of the budget on top of what is held.
    pub(in crate::edge) fn grow(&mut self, more: usize) -> Result<(), Cause> {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = taken.bytes.saturating_add(more);
        if wanted > self.slots.most.most_body_bytes {
            return Err(Cause::EdgeBusy);
        }
        taken.bytes = wanted;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner).bytes -= self.bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(own) = taken.by_tenant.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                taken.by_tenant.remove(&self.tenant);
            }
        }
    }
}

impl Admitted {
    pub(in crate::edge) fn into_parts(self) -> (Head, RequestBody, Verb, Principal, Permit) {
        let (head, body, verb, principal) = self.paced.into_parts();
        (head, body, verb, principal, self.permit)
    }

    #[cfg(test)]
    pub(crate) fn for_test(paced: Paced) -> Self {
        Self { paced, permit: Permit::for_test() }
    }
}

impl<S> Layer<S> for Admit {
    type Service = Admitting<S>;

    fn layer(&self, inner: S) -> Admitting<S> {
        Admitting { slots: Arc::clone(&self.0), inner }
    }
}

impl<S> Service<Paced> for Admitting<S>
where
    S: Service<Admitted, Response = Answer, Error = Rejection> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Answer;
    type Error = Rejection;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Rejection>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Paced) -> Self::Future {
        let admitted = Admit::check(&self.slots, request);
        let mut inner = self.inner.clone();
        Box::pin(async move {
            let admitted = admitted?;
            // Dropped here, the exchange ends and the permit with it.
            let permit = admitted.permit.clone();
            let answer = inner.call(admitted).await?;
            Ok(answer.map(|body| Permitted { body, permit: Some(permit) }.boxed_unsync()))
        })
    }
}

impl Body for Permitted {
    type Data = Bytes;
    type Error = <AnswerBody as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.project();
        let frame = std::task::ready!(this.body.poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            *this.permit = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::{Admit, Admitted};
    use crate::edge::{Cause, Exchanges, Paced};
    use crate::identity::{Catalogue, Principal};

    fn check(admit: &Admit, tenant: &str) -> Result<Admitted, Cause> {
        let request = http::Request::post("/mcp").body("").expect("a request");
        let paced = Paced::for_test(request, Principal::for_test(tenant, Catalogue::Sandbox));
        Admit::check(&admit.0, paced).map_err(|rejection| rejection.cause)
    }

    fn limits(most: usize, most_per_tenant: usize) -> Admit {
        Admit::new(Exchanges { most, most_per_tenant, most_body_bytes: 10 })
    }

    #[test]
    fn a_tenant_gets_its_slots_and_not_one_more() {
        let admit = limits(10, 2);
        let held = [check(&admit, "alice"), check(&admit, "alice")];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(check(&admit, "alice").err(), Some(Cause::TenantBusy { most: 2 }));
        assert!(check(&admit, "bob").is_ok());
        drop(held);
        assert!(check(&admit, "alice").is_ok());
        assert_eq!(admit.under_way(), 0);
    }

    #[test]
    fn all_tenants_together_get_the_global_slots() {
        let admit = limits(2, 2);
        let _held = [check(&admit, "alice"), check(&admit, "bob")];
        assert_eq!(check(&admit, "carol").err(), Some(Cause::EdgeBusy));
    }

    #[test]
    fn a_permit_is_given_back_once_its_last_holder_ends() {
        let admit = limits(1, 1);
        let permit = check(&admit, "alice").map(|admitted| admitted.permit).expect("a slot");
        let share = permit.clone();
        drop(permit);
        assert!(check(&admit, "alice").is_err());
        drop(share);
        assert!(check(&admit, "alice").is_ok());
    }

    #[test]
    fn the_byte_budget_is_shared_and_given_back() {
        let admit = limits(9, 9);
        let (a, b) = (check(&admit, "alice").expect("a slot"), check(&admit, "bob").expect("a slot"));
        let mut first = a.permit.reserve_nothing();
        let mut second = b.permit.reserve_nothing();
        assert_eq!(first.grow(9), Ok(()));
        assert_eq!(second.grow(1), Ok(()));
        assert_eq!(second.grow(1), Err(Cause::EdgeBusy));
        drop(first);
        assert_eq!(second.grow(9), Ok(()));
    }
}
