//! What a stage is, and how stages become one path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower::{Layer, Service};

use crate::edge::Rejection;

/// One stage: it turns a less trusted request into a more trusted one, or refuses it.
pub(crate) trait Gate: Send + Sync + 'static {
    type Request: Send + 'static;
    type Passed: Send + 'static;

    fn check(&self, request: Self::Request) -> impl Future<Output = Result<Self::Passed, Rejection>> + Send;
}

/// The one adapter between a [`Gate`] and tower.
pub(crate) struct Gated<G>(Arc<G>);

pub(crate) struct Guarded<G, S> {
    gate: Arc<G>,
    inner: S,
}

impl<G: Gate> Gated<G> {
    pub(crate) fn new(gate: G) -> Self {
        Self(Arc::new(gate))
    }

    pub(crate) fn gate(&self) -> &Arc<G> {
        &self.0
    }
}

impl<G> Clone for Gated<G> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<G, S> Layer<S> for Gated<G> {
    type Service = Guarded<G, S>;

    fn layer(&self, inner: S) -> Guarded<G, S> {
        Guarded { gate: Arc::clone(&self.0), inner }
    }
}

impl<G, S: Clone> Clone for Guarded<G, S> {
    fn clone(&self) -> Self {
        Self { gate: Arc::clone(&self.gate), inner: self.inner.clone() }
    }
}

impl<G, S> Service<G::Request> for Guarded<G, S>
where
    G: Gate,
    S: Service<G::Passed, Error = Rejection> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = Rejection;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Rejection>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        // No stage keeps a queue: what is at its limit refuses in `check`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: G::Request) -> Self::Future {
        let gate = Arc::clone(&self.gate);
        let mut inner = self.inner.clone();
        Box::pin(async move { inner.call(gate.check(request).await?).await })
    }
}
