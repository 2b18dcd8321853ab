//! What a stage is that answers some requests itself and lets the rest pass.

use std::future::{Future, ready};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower::{Layer, Service};

use crate::edge::{Answer, Bounded, Cause, Rejection};

/// Answers on the way; everything else goes on as it came.
pub(crate) trait Interceptor {
    /// Whose a request is follows from its head, at once; what is answered may take its time.
    fn intercept(&self, request: Bounded) -> ControlFlow<Answering, Bounded>;
}

/// An answer that is on its way, or a refusal. Dropped, nothing is answered.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Rejection>> + Send>>;

/// An answer that is there already.
pub(crate) fn at_once(answer: Result<Answer, Cause>) -> Answering {
    Box::pin(ready(answer.map_err(Rejection::from)))
}

/// The one adapter between an [`Interceptor`] and tower.
#[derive(Clone)]
pub(crate) struct Intercepting<I>(pub(crate) I);

#[derive(Clone)]
pub(crate) struct Intercepted<I, S> {
    interceptor: I,
    inner: S,
}

impl<I: Clone, S> Layer<S> for Intercepting<I> {
    type Service = Intercepted<I, S>;

    fn layer(&self, inner: S) -> Intercepted<I, S> {
        Intercepted { interceptor: self.0.clone(), inner }
    }
}

impl<I, S> Service<Bounded> for Intercepted<I, S>
where
    I: Interceptor,
    S: Service<Bounded, Response = Answer, Error = Rejection>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Rejection;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Bounded) -> Answering {
        match self.interceptor.intercept(request) {
            ControlFlow::Break(answering) => answering,
            ControlFlow::Continue(request) => Box::pin(self.inner.call(request)),
        }
    }
}
