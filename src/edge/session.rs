//! Where a message belongs: to which worker, and in which public session.
//!
//! A legacy client's session exists in the edge alone. Its public id is sealed: everything the edge must know stands in
//! the id itself, so a session survives the edge. The worker's own session id, if it has one, is inside and never
//! leaves. A session is bound to its tenant, never to a credential, so that a renewed token keeps it.

mod flights;
mod lasting;
mod live;
mod routed;
mod seal;
mod table;
mod tombstones;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use tower::{Layer, Service};

use crate::edge::client::Client;
use crate::edge::{Answer, Call, Cause, Era, Kind, Message, Parsed, Rejection, empty};
use crate::identity::Principal;
use crate::worker::{Routes, Upstream};

pub use live::{LiveSession, NotAName, NotEnded, SessionName};
pub use seal::SessionKey;

pub(crate) use flights::Flight;
pub(crate) use lasting::Lasting;
pub(crate) use routed::{Opened, Reply, Routed, Session};
pub(crate) use table::Departed;

use flights::Flights;
use seal::{Sealed, Sealer};
use table::{Full, Holder, Reservation, Table};

/// The sixth stage: it also touches the answer, to give an opened session its public id.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Shared>);

struct Shared {
    routes: Arc<Routes>,
    sealer: Sealer,
    table: Arc<Table>,
    flights: Arc<Flights>,
}

#[derive(Clone)]
pub(crate) struct Sessioned<S> {
    shared: Arc<Shared>,
    inner: S,
}

impl Sessions {
    pub(crate) fn new(routes: Arc<Routes>, key: &SessionKey, lasting: Lasting) -> Result<Self, seal::BadKey> {
        let Lasting { table, flights } = lasting;
        Ok(Self(Arc::new(Shared { routes, sealer: Sealer::new(key)?, table, flights })))
    }
}

/// What is to be done with a message once its place is known.
enum Place {
    /// It may open a session; a native worker's has its place already.
    Open(Box<Routed>, Option<Reservation>),
    /// Within this session, if the worker has one of its own that it may have forgotten.
    Forward(Box<Routed>, Option<Box<Sealed>>),
    /// The session ends here; the worker is told if it has one of its own.
    End(Box<Routed>, Box<Sealed>),
    /// A cancellation that the edge carries out itself.
    Done,
}

impl Shared {
    fn place(&self, request: Parsed) -> Result<Place, Rejection> {
        let id = request.id().cloned();
        self.find(request).map_err(|cause| Rejection::about(cause, id.as_ref()))
    }

    fn find(&self, request: Parsed) -> Result<Place, Cause> {
        let (head, principal, permit, call) = request.into_parts();
        let upstream = Arc::clone(self.routes.upstream(&principal).map_err(|_unmapped| Cause::NoWorker)?);
        if upstream.barred.has(principal.tenant()) {
            return Err(Cause::TenantDisabled);
        }
        let sessionless = match &call {
            Call::Message(message) => matches!(message.era, Era::Modern | Era::Opening),
            Call::Stream | Call::End => false,
        };
        if let Call::Message(Message { retired: Some(requested), .. }) = &call
            // Ours settles on a revision that the edge carries. Another may agree, and nobody could go on from there.
            && !upstream.sends_tenant
        {
            return Err(Cause::RetiredVersion { requested });
        }
        if sessionless {
            let opens = matches!(&call, Call::Message(Message { era: Era::Opening, .. }));
            let place = (opens && !upstream.sends_tenant).then(|| self.reserve(&principal)).transpose()?;
            let routed = Routed { head, principal, permit, call, upstream, session: None, flight: None };
            return Ok(Place::Open(Box::new(routed), place));
        }
        let sealed = self.live(&head.headers, &principal, &upstream)?;
        self.table.is_used_by(sealed.id, &principal, head.client);
        let session = Some(Session { version: sealed.version, upstream: sealed.upstream.clone() });
        let mut flight = None;
        if sealed.upstream.is_none() {
            match &call {
                Call::Message(Message { cancels: Some(id), .. }) => {
                    self.flights.cancel(sealed.id, id);
                    return Ok(Place::Done);
                }
                Call::Message(Message { kind: Kind::Request { id, .. }, .. }) => {
                    flight = Some(Flights::begin(&self.flights, sealed.id, id.clone()));
                }
                Call::Message(_) | Call::End => {}
                // A worker without sessions has no stream of one.
                Call::Stream => return Err(Cause::MethodNotAllowed { allow: "POST, DELETE" }),
            }
        } else if matches!(call, Call::Stream) {
            flight = Some(Flights::listen(&self.flights, sealed.id));
        }
        let ends = matches!(call, Call::End);
        let routed = Box::new(Routed { head, principal, permit, call, upstream, session, flight });
        let sealed = Box::new(sealed);
        Ok(if ends { Place::End(routed, sealed) } else { Place::Forward(routed, Some(sealed)) })
    }

    /// The session that the request names: genuine, of this tenant and worker, and alive.
    fn live(&self, headers: &HeaderMap, principal: &Principal, upstream: &Upstream) -> Result<Sealed, Cause> {
        let named = headers.get(SESSION).filter(|value| !value.is_empty()).ok_or(Cause::NoSession)?;
        let sealed = self.sealer.open(named.as_bytes()).ok_or(Cause::UnknownSession)?;
        if sealed.tenant != *principal.tenant() {
            return Err(Cause::ForeignSession);
        }
        let same_worker = sealed.worker == upstream.name && sealed.catalogue == principal.catalogue();
        let alive = same_worker && self.table.touch(&sealed, kit::clock::now(), kit::clock::since_epoch());
        if alive { Ok(sealed) } else { Err(Cause::UnknownSession) }
    }

    fn reserve(&self, principal: &Principal) -> Result<Reservation, Cause> {
        let (now, today) = (kit::clock::now(), kit::clock::since_epoch());
        self.table.reserve(principal.tenant(), now, today).map_err(|full| match full {
            Full::Tenant { most } => Cause::TenantSessions { most },
            Full::All => Cause::EdgeBusy,
        })
    }

    fn open(
        &self,
        principal: &Principal,
        upstream: &Upstream,
        (client, stated): (Client, Option<String>),
        opened: Opened,
    ) -> Result<HeaderValue, Cause> {
        let issued = kit::clock::since_epoch();
        let sealed = Sealed {
            id: seal::SessionId::fresh().ok_or(Cause::EdgeBusy)?,
            tenant: principal.tenant().clone(),
            catalogue: principal.catalogue(),
            worker: upstream.name.clone(),
            upstream: opened.upstream,
            version: opened.version,
            issued,
            expires: issued.saturating_add(self.table.lifetime()),
        };
        self.table.insert(&sealed, kit::clock::now());
        let credential = principal.credential().clone();
        self.table.is_opened_by(sealed.id, Holder { credential, client, stated });
        self.sealer.seal(&sealed).ok_or(Cause::EdgeBusy)
    }
}

impl<S> Layer<S> for Sessions {
    type Service = Sessioned<S>;

    fn layer(&self, inner: S) -> Sessioned<S> {
        Sessioned { shared: Arc::clone(&self.0), inner }
    }
}

impl<S> Service<Parsed> for Sessioned<S>
where
    S: Service<Routed, Response = Reply, Error = Rejection> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Answer;
    type Error = Rejection;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Rejection>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Parsed) -> Self::Future {
        let placed = self.shared.place(request);
        let (shared, inner) = (Arc::clone(&self.shared), self.inner.clone());
        Box::pin(async move {
            match placed? {
                Place::Open(routed, place) => shared.forward(*routed, None, place, inner).await,
                Place::Forward(routed, within) => shared.forward(*routed, within.as_deref(), None, inner).await,
                Place::End(routed, sealed) => shared.end(*routed, &sealed, inner).await,
                Place::Done => Ok(bare(StatusCode::ACCEPTED)),
            }
        })
    }
}

impl Shared {
    async fn forward<S>(
        &self,
        routed: Routed,
        within: Option<&Sealed>,
        place: Option<Reservation>,
        mut inner: S,
    ) -> Result<Answer, Rejection>
    where
        S: Service<Routed, Response = Reply, Error = Rejection>,
    {
        let (principal, upstream) = (routed.principal.clone(), Arc::clone(&routed.upstream));
        let stated = match &routed.call {
            Call::Message(message) => message.stated.clone(),
            Call::Stream | Call::End => None,
        };
        let client = routed.head.client;
        let reply = inner.call(routed).await;
        if let (Err(rejection), Some(within)) = (&reply, within)
            && rejection.cause == Cause::UnknownSession
        {
            // The worker has forgotten its side. Ours ends with it; that this fails to be recorded costs one more 404.
            let _ = self.table.end(within, kit::clock::since_epoch()).await;
        }
        let Reply { mut answer, opened } = reply?;
        if let Some(opened) = opened {
            let id = self.open(&principal, &upstream, (client, stated), opened)?;
            answer.headers_mut().insert(SESSION, id);
        }
        // By now the session has a place of its own. Whatever failed on the way here has given this one back as well.
        drop(place);
        Ok(answer)
    }

    async fn end<S>(&self, routed: Routed, sealed: &Sealed, mut inner: S) -> Result<Answer, Rejection>
    where
        S: Service<Routed, Response = Reply, Error = Rejection>,
    {
        self.flights.cancel_all(sealed.id);
        if let Err(fault) = self.table.end(sealed, kit::clock::since_epoch()).await {
            let fault: &dyn std::error::Error = &fault;
            tracing::error!(fault, "the end of a session cannot be recorded");
            return Err(Cause::SessionNotEnded.into());
        }
        if sealed.upstream.is_some() {
            // Whatever the worker says to it, the public session is over.
            let _ = inner.call(routed).await;
        }
        Ok(bare(StatusCode::NO_CONTENT))
    }
}

fn bare(status: StatusCode) -> Answer {
    let mut answer = Response::new(empty());
    *answer.status_mut() = status;
    answer.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

const SESSION: &str = "mcp-session-id";

#[cfg(test)]
mod tests;
