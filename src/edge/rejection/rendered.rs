//! The one place where a refusal becomes an answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use tower::{Layer, Service};

use crate::edge::cors::{self, Cors};
use crate::edge::face::Faces;
use crate::edge::{Accepted, Answer, Rejection};

/// Outermost of the path: below it stages refuse, above it everything is an answer.
#[derive(Clone)]
pub(crate) struct Rendered {
    cors: Cors,
    faces: Faces,
    https_alone: Option<HeaderValue>,
}

#[derive(Clone)]
pub(crate) struct Rendering<S> {
    outer: Rendered,
    inner: S,
}

impl Rendered {
    pub(crate) fn new(cors: Cors, faces: Faces, https_alone: Option<Duration>) -> Self {
        // Never for the names below ours, which may be other people's.
        let told = |time: Duration| HeaderValue::from_str(&format!("max-age={}", time.as_secs())).ok();
        Self { cors, faces, https_alone: https_alone.and_then(told) }
    }
}

impl<S> Layer<S> for Rendered {
    type Service = Rendering<S>;

    fn layer(&self, inner: S) -> Rendering<S> {
        Rendering { outer: self.clone(), inner }
    }
}

impl<S> Service<Accepted> for Rendering<S>
where
    S: Service<Accepted, Response = Answer, Error = Rejection>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Accepted) -> Self::Future {
        let reference = request.head().reference;
        let notes = Arc::clone(&request.head().notes);
        let origin = self.outer.cors.listed(&request.head().headers);
        let login = self.outer.faces.advice(request.head());
        let https_alone = self.outer.https_alone.clone();
        let served = self.inner.call(request);
        Box::pin(async move {
            let mut answer = served.await.unwrap_or_else(|rejection| {
                rejection.log();
                notes.is_refused(&rejection.cause);
                rejection.render(reference, login.as_ref())
            });
            if let Some(origin) = origin {
                cors::name(&mut answer, origin);
            }
            if let Some(told) = https_alone {
                answer.headers_mut().insert(STRICT_TRANSPORT_SECURITY, told);
            }
            Ok(answer)
        })
    }
}
