//! `/healthz`: whether the edge is alive, for whoever balances load before it.
//!
//! It says that and nothing else, to everybody, on every door: no token is asked for, no name of this server, and what
//! stands behind it stays unsaid. It is answered before authentication, so no tenant's rate is charged for it; an
//! address has a rate of its own. A stop is told with 503 on the connections that are still open, so that whoever keeps
//! one goes elsewhere.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::sync::watch;

use crate::buckets::Buckets;
use crate::edge::client::Client;
use crate::edge::interceptor::{self, Answering, Interceptor};
use crate::edge::{Answer, Bounded, Cause, Head, Rates};

/// Answers on the way; everything else goes on.
#[derive(Clone)]
pub(crate) struct Alive(Arc<Shared>);

struct Shared {
    probes: Buckets<Client>,
    stopping: watch::Receiver<bool>,
}

impl Alive {
    pub(crate) fn new(rates: &Rates, stopping: watch::Receiver<bool>) -> Self {
        let each = Duration::from_secs(1) / rates.probes_per_second.max(1);
        Self(Arc::new(Shared { probes: Buckets::new(each, rates.probes_burst, rates.most_addresses), stopping }))
    }

    /// Addresses that are remembered.
    pub(crate) fn addresses(&self) -> usize {
        self.0.probes.len()
    }
}

impl Shared {
    fn answer(&self, head: &Head) -> Result<Answer, Cause> {
        head.notes.asks_for_health();
        self.probes.take(head.client).map_err(|empty| Cause::TooManyProbes { again: empty.again })?;
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(Cause::MethodNotAllowed { allow: "GET, HEAD" });
        }
        let (status, text) = if *self.stopping.borrow() {
            (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
        } else {
            (StatusCode::OK, "ok\n")
        };
        let mut answer = Response::new(Full::from(text).map_err(|never| match never {}).boxed_unsync());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(answer)
    }
}

/// Whether a path is the one that is answered here.
pub(crate) fn is_alive(path: &str) -> bool {
    path == "/healthz"
}

impl Interceptor for Alive {
    fn intercept(&self, request: Bounded) -> ControlFlow<Answering, Bounded> {
        if is_alive(request.head().uri.path()) {
            return ControlFlow::Break(interceptor::at_once(self.0.answer(request.head())));
        }
        ControlFlow::Continue(request)
    }
}
