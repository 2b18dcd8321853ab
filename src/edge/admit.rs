//! How much may be under way at once.
//!
//! Slots for each tenant and for all, and likewise a budget of bytes for request bodies and for those answers that do not
//! pass as they come. What does not fit is refused at once: nothing queues here. The slot lives in the answer's body, so a
//! stream counts until its last byte; when a legacy client leaves, the rest of the exchange keeps a share of the same
//! permit until the worker is done.
//!
//! A tenant that holds nothing gets a slot: no tenant holds more than a quarter of all, and the last quarter is for first
//! ones. Each that was ever taken beyond the common part is the only one of its tenant, so the slots in use are never more
//! than the common part and one for each tenant that holds any. Once as many tenants as there are kept slots hold some at
//! once, the next one is refused if the others have really filled everything.
//!
//! And how much of it in a second: the answers of a tenant leave at the rate it may have, over all its connections.

mod bandwidth;
mod reserved;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use kit::Tenant;
use pin_project::pin_project;
use tokio::time::{Sleep, sleep};
use tower::{Layer, Service};

use crate::edge::{Answer, AnswerBody, Cause, Config, Exchanges, Head, Paced, Rejection, RequestBody, Verb};
use crate::identity::Principal;

pub(crate) use reserved::Reserved;

use bandwidth::Bandwidth;

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

pub(crate) struct Slots {
    taken: Mutex<Taken>,
    bandwidth: Bandwidth,
}

struct Taken {
    most: Exchanges,
    whole_body: usize,
    all: usize,
    // An entry exists only while its tenant holds something, so the table is as bounded as the slots are.
    by_tenant: HashMap<Tenant, Own>,
    bytes: usize,
}

/// What one tenant holds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Own {
    slots: usize,
    streams: usize,
    bytes: usize,
}

struct Held {
    slots: Arc<Slots>,
    tenant: Tenant,
    is_stream: AtomicBool,
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
    // What has been sent is more than the tenant may have had by now.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Admit {
    pub(crate) fn new(config: &Config) -> Self {
        let (most, whole_body) = (config.exchanges.clone(), config.requests.most_body_bytes);
        warn_of_share(&most);
        let taken = Taken { most, whole_body, all: 0, by_tenant: HashMap::new(), bytes: 0 };
        let bandwidth = Bandwidth::new(config.rates.tenant_bytes_per_second);
        Self(Arc::new(Slots { taken: Mutex::new(taken), bandwidth }))
    }

    /// Takes up other bounds. What is under way keeps its place, also beyond them.
    pub(crate) fn adopt(&self, config: &Config) {
        warn_of_share(&config.exchanges);
        self.0.bandwidth.adopt(config.rates.tenant_bytes_per_second);
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.most = config.exchanges.clone();
        taken.whole_body = config.requests.most_body_bytes;
    }

    fn check(slots: &Arc<Slots>, request: Paced) -> Result<Admitted, Rejection> {
        let permit = slots.take(request.principal().tenant())?;
        Ok(Admitted { paced: request, permit })
    }

    /// How many may be under way.
    pub(crate) fn most(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).most.most
    }

    /// Exchanges under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

fn warn_of_share(most: &Exchanges) {
    let share = most.slots_per_tenant();
    if share < most.most_per_tenant {
        tracing::warn!(asked = most.most_per_tenant, share, "a tenant gets no more than a quarter of all exchanges");
    }
}

impl Slots {
    fn take(self: &Arc<Self>, tenant: &Tenant) -> Result<Permit, Cause> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.own(tenant);
        let share = taken.most.slots_per_tenant();
        if own.slots >= share {
            return Err(Cause::TenantBusy { most: share });
        }
        let most = if own.slots == 0 { taken.most.most } else { taken.most.common_slots() };
        if taken.all >= most {
            return Err(Cause::EdgeBusy);
        }
        taken.all += 1;
        taken.keep(tenant, Own { slots: own.slots + 1, ..own });
        Ok(Permit(Arc::new(Held {
            slots: Arc::clone(self),
            tenant: tenant.clone(),
            is_stream: AtomicBool::new(false),
        })))
    }
}

impl Taken {
    fn own(&self, tenant: &Tenant) -> Own {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    fn keep(&mut self, tenant: &Tenant, own: Own) {
        if own == Own::default() {
            self.by_tenant.remove(tenant);
        } else {
            self.by_tenant.insert(tenant.clone(), own);
        }
    }
}

impl Permit {
    /// Counts the exchange as a stream that has no end of its own, until the permit is given back.
    pub(in crate::edge) fn becomes_stream(&self) -> Result<(), Cause> {
        let Held { slots, tenant, is_stream } = &*self.0;
        let mut taken = slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.own(tenant);
        let most = taken.most.most_streams_per_tenant;
        if own.streams >= most {
            return Err(Cause::TenantStreams { most });
        }
        if !is_stream.swap(true, Ordering::Relaxed) {
            taken.keep(tenant, Own { streams: own.streams + 1, ..own });
        }
        Ok(())
    }

    /// How long its tenant has to wait for more, after so many bytes of an answer.
    fn sends(&self, bytes: usize) -> Duration {
        let Held { slots, tenant, .. } = &*self.0;
        slots.bandwidth.take(tenant, bytes)
    }

    /// An empty share of the byte budget.
    pub(in crate::edge) fn reserve_nothing(&self) -> Reserved {
        Reserved::nothing(&self.0.slots, &self.0.tenant)
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        let Admit(slots) = Admit::new(&Config::default());
        slots.take(&Tenant::parse("alice").expect("a tenant")).expect("a free slot")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.own(&self.tenant);
        taken.all -= 1;
        let streams = own.streams - usize::from(*self.is_stream.get_mut());
        taken.keep(&self.tenant, Own { slots: own.slots - 1, streams, ..own });
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
            Ok(answer.map(|body| Permitted { body, permit: Some(permit), pause: None }.boxed_unsync()))
        })
    }
}

impl Body for Permitted {
    type Data = Bytes;
    type Error = <AnswerBody as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.project();
        if let Some(pause) = this.pause {
            std::task::ready!(pause.as_mut().poll(context));
            *this.pause = None;
        }
        let frame = std::task::ready!(this.body.poll_frame(context));
        match (&frame, &*this.permit) {
            (Some(Ok(frame)), Some(permit)) => {
                let wait = permit.sends(frame.data_ref().map_or(0, Bytes::len));
                *this.pause = (wait >= SHORTEST_PAUSE).then(|| Box::pin(sleep(wait)));
            }
            _ => *this.permit = None,
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

/// Below what the runtime's clock can tell, waiting costs more than it holds back.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
