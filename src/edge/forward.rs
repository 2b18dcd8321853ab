//! The exchange with the worker: one public exchange is one upstream exchange, sent once.
//!
//! Bytes pass as they come, JSON and event streams alike. What a broken exchange may say depends on how far it got:
//! "not sent" when no byte can have been read, "outcome unknown, not repeated" ever after. Whether the client's
//! leaving ends the exchange depends on the era: for a modern client it is the cancellation, for a legacy client it is
//! none, and a worker that would take it for one gets its answer read to the end.

mod ahead;
mod answer;
mod answered;
mod bridge;
mod carried;
mod catalogue;
mod deadline;
mod depart;
mod discovery;
mod edited;
mod eras;
mod farewell;
mod forgotten;
mod headers;
mod leave;
mod line;
mod manner;
mod opening;
mod pool;
mod pools;
mod relay;
mod rewrites;
mod sse;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use kit::tasks::Tasks;
use tokio::sync::watch;
use tower::Service;

use crate::edge::config::{Answers, Bridges};
use crate::edge::{Authority, Call, Cause, Flight, Kind, Rejection, Reply, Routed, Session};
use crate::identity::Principal;
use crate::worker::Upstream;

pub(crate) use depart::Departures;
pub(crate) use pools::Pools;

use answer::{Absent, Shape};
use deadline::Deadline;
use eras::Way;
use leave::{Exchange, Leave, Rest};
use manner::{Caches, Manner};
use relay::{Relay, Terms};
use rewrites::Rewrites;

/// The last stage.
#[derive(Clone)]
pub(crate) struct Forward(Arc<Shared>);

struct Shared {
    limits: Answers,
    bridges: Bridges,
    authority: Arc<dyn Authority>,
    /// Drives connections to workers; these end with the edge.
    drivers: Tasks,
    /// Finishes exchanges whose client has gone; the edge waits for these.
    leaves: Tasks,
    stopping: watch::Receiver<bool>,
    pools: Pools,
}

/// Who owns what goes on beside the requests.
pub(crate) struct Background {
    pub(crate) drivers: Tasks,
    pub(crate) leaves: Tasks,
    pub(crate) pools: Pools,
}

impl Forward {
    pub(crate) fn new(
        (limits, bridges): (Answers, Bridges),
        authority: Arc<dyn Authority>,
        Background { drivers, leaves, pools }: Background,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self(Arc::new(Shared { limits, bridges, authority, drivers, leaves, stopping, pools }))
    }
}

impl Service<Routed> for Forward {
    type Response = Reply;
    type Error = Rejection;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Rejection>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, routed: Routed) -> Self::Future {
        let shared = Arc::clone(&self.0);
        routed.head.notes.goes_to(&routed.upstream);
        Box::pin(async move {
            let id = match &routed.call {
                Call::Message(message) => message.kind.id().cloned(),
                Call::Stream | Call::End => None,
            };
            shared.forward(routed).await.map_err(|cause| Rejection::about(cause, id.as_ref()))
        })
    }
}

impl Shared {
    async fn forward(&self, routed: Routed) -> Result<Reply, Cause> {
        if !routed.upstream.presence.is_up() {
            return Err(Cause::NotSent);
        }
        match eras::way(&routed.call, &routed.upstream)? {
            Way::Native => self.exchange(routed).await,
            Way::Bridged => self.bridge(routed).await,
        }
    }

    async fn exchange(&self, routed: Routed) -> Result<Reply, Cause> {
        let Routed { head, principal, permit, call, upstream, session, flight } = routed;
        let manner = Manner::of(&call, session.as_ref());
        let expects = expected(&call);
        let bounds = &upstream.terms.bounds;
        let deadline = if manner.endless { Deadline::never() } else { Deadline::after(bounds.total) };
        if manner.endless {
            permit.becomes_stream()?;
        }
        let ends = matches!(call, Call::End);
        let request = headers::request(&head, &principal, call, &upstream, session.as_ref())?;
        // Nothing is sent before this returns, so dropping it leaves no trace.
        let connect = bounds.connect.min(deadline.left(kit::clock::now()));
        let pool = self.pools.of(&upstream, &self.limits, &self.drivers);
        let wire = pool.wire(connect).await.inspect_err(|cause| miss(&upstream, cause))?;
        let wait = if ends { bounds.connect } else { bounds.head }.min(deadline.left(kit::clock::now()));
        let cancelled = flight.as_ref().map(Flight::cancelled);
        let rest = Rest { bound: self.limits.drain, deadline, most_reply_bytes: bounds.most_reply_bytes };
        let (leave, flight) = if manner.outlives_client {
            (Some(Leave::new(self.leaves.clone(), rest, permit, flight)), None)
        } else {
            (None, flight)
        };
        let sent = kit::clock::now();
        let exchange = Exchange::new(wire.send(request, wait), leave);
        let (answered, leave) = match cancelled {
            None => exchange.run().await,
            Some(cancelled) => tokio::select! {
                biased;
                // The client has said that it wants no answer: its stream ends without one, and the worker's with it.
                () = cancelled => return Ok(Reply { answer: answer::nothing(), opened: None }),
                answered = exchange.run() => answered,
            },
        };
        let (response, wire) = answered.inspect_err(|cause| miss(&upstream, cause))?.into_parts();
        upstream.health.hear(response.status());
        if !(manner.opening || manner.discovers) {
            head.notes.was_answered(kit::clock::now().saturating_duration_since(sent));
        }
        let absent = absent(session.as_ref());
        let shape = answer::judge(&response, expects, absent)?;
        let (parts, body) = response.into_parts();
        let most_bytes = if shape == Shape::Events { u64::MAX } else { bounds.most_reply_bytes };
        if body.size_hint().lower() > most_bytes {
            return Err(Cause::ReplyTooLarge { most: most_bytes });
        }
        let terms = Terms {
            events: shape == Shape::Events,
            idle: bounds.idle,
            deadline,
            most_bytes,
            comment: self.limits.comment,
            reference: head.reference,
        };
        let mut relay = Relay::new(body, wire, terms, leave, manner.farewell).noted(Arc::clone(&head.notes));
        if manner.endless {
            relay.ends_when(self.ends(&principal, flight));
        }
        if parts.status == StatusCode::BAD_REQUEST && shape == Shape::Json && absent == Absent::Session {
            forgotten::read(&mut relay, self.limits.most_buffered_bytes).await?;
        }
        let opened = if manner.opening {
            let session = answer::session(&parts.headers)?;
            opening::read(&mut relay, shape == Shape::Events, self.limits.most_buffered_bytes, session).await?
        } else {
            None
        };
        if manner.discovers {
            let events = shape == Shape::Events;
            let neutral = upstream.sends_tenant || upstream.terms.shared_catalogue;
            discovery::read(&mut relay, events, self.limits.most_buffered_bytes, neutral).await?;
        }
        if let Some(Caches(caches)) = manner.lists
            && !principal.reach().is_whole()
        {
            let change = |text: &[u8]| catalogue::message(text, principal.reach(), caches);
            edited::read(&mut relay, shape == Shape::Events, self.limits.most_buffered_bytes, change).await?;
        }
        if manner.replays && !principal.reach().is_whole() {
            let reach = Arc::clone(principal.reach());
            let change = Box::new(move |text: &[u8]| catalogue::message(text, &reach, false));
            relay.rewrites(Rewrites::new(self.limits.most_buffered_bytes, change));
        }
        let mut answer =
            Response::new(if shape == Shape::Nothing { crate::edge::empty() } else { relay.boxed_unsync() });
        // The specification has one status for what is accepted without an answer.
        *answer.status_mut() = if shape == Shape::Nothing { StatusCode::ACCEPTED } else { parts.status };
        *answer.headers_mut() = headers::answer(&parts.headers, shape);
        Ok(Reply { answer, opened })
    }

    /// What ends a stream that has no end of its own.
    fn ends(&self, principal: &Principal, flight: Option<Flight>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut stopping = self.stopping.clone();
        let revoked = self.authority.revoked(principal);
        Box::pin(async move {
            let ended = async {
                match &flight {
                    Some(flight) => flight.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = revoked => {}
                () = ended => {}
            }
        })
    }
}

/// A worker that could not be sent anything is seen to be away.
fn miss(upstream: &Upstream, cause: &Cause) {
    if *cause == Cause::NotSent {
        upstream.health.refuse();
    }
}

/// What a 404 of the worker's would be about.
fn absent(session: Option<&Session>) -> Absent {
    match session {
        None => Absent::Method,
        Some(Session { upstream: Some(_), .. }) => Absent::Session,
        Some(Session { upstream: None, .. }) => Absent::Nothing,
    }
}

/// Whether the worker owes an answer with a body.
fn expected(call: &Call) -> answer::Expects {
    match call {
        Call::Message(message) => match message.kind {
            Kind::Request { .. } => answer::Expects::Result,
            Kind::Notification { .. } | Kind::Response => answer::Expects::Acceptance,
        },
        Call::Stream => answer::Expects::Stream,
        Call::End => answer::Expects::Acceptance,
    }
}
