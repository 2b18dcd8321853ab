//! Telling workers that sessions have ended without their clients.
//!
//! Nobody waits for it and nothing is promised by it: a few at a time, in the background, each once.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kit::tasks::Tasks;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::edge::Session;
use crate::edge::config::Answers;
use crate::worker::Upstream;

use super::carried::Carried;
use super::leave::read_out;
use super::{Pools, headers};

/// Ends workers' own sessions on behalf of nobody.
#[derive(Clone)]
pub(crate) struct Departures {
    places: Arc<Semaphore>,
    tasks: Tasks,
    pools: Pools,
}

impl Departures {
    pub(crate) fn new(tasks: Tasks, pools: Pools) -> Self {
        Self { places: Arc::new(Semaphore::new(MOST_AT_ONCE)), tasks, pools }
    }

    /// The right to tell one more worker; none while as many are being told as may be.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    pub(crate) fn tell(
        &self,
        upstream: Arc<Upstream>,
        session: Session,
        limits: &Answers,
        place: OwnedSemaphorePermit,
    ) {
        let pool = self.pools.of(&upstream, limits, &self.tasks);
        self.tasks.start(async move {
            let told = async {
                let mut request = Request::new(Carried::nothing());
                *request.method_mut() = Method::DELETE;
                *request.uri_mut() = upstream.terms.path.uri();
                *request.headers_mut() = headers::departing(&upstream, &session)?;
                let wire = pool.wire(upstream.terms.bounds.connect).await?;
                let (response, wire) = wire.send(request, MOST_WAIT).await?.into_parts();
                read_out(response.into_body(), wire, upstream.terms.bounds.most_reply_bytes).await;
                Ok::<_, crate::edge::Cause>(())
            };
            // The worker may have forgotten it by itself; whatever it says, there is nobody to tell.
            if !matches!(timeout(MOST_WAIT, told).await, Ok(Ok(()))) {
                tracing::debug!(worker = upstream.label(), "a worker could not be told that a session has ended");
            }
            drop(place);
        });
    }
}

const MOST_AT_ONCE: usize = 16;

const MOST_WAIT: Duration = Duration::from_secs(5);
