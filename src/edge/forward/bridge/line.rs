//! How the edge's messages get to one tenant's worker.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use kit::tasks::Tasks;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::edge::{Cause, Reference, Session as Place};
use crate::identity::Principal;
use crate::worker::Upstream;

use crate::edge::forward::carried::Carried;
use crate::edge::forward::headers;
use crate::edge::forward::leave::{Answered, read_out};
use crate::edge::forward::miss;
use crate::edge::forward::pool::Pool;

use super::session::OPENING;

#[derive(Clone)]
pub(super) struct Line {
    pub(super) pool: Arc<Pool>,
    pub(super) principal: Principal,
    pub(super) reference: Reference,
    pub(super) upstream: Arc<Upstream>,
    /// For what is said beside the exchanges; it ends with the edge.
    pub(super) drivers: Tasks,
}

impl Line {
    /// Sends one message, once.
    pub(super) async fn post(&self, place: Option<&Place>, body: Carried, wait: Duration) -> Result<Answered, Cause> {
        let mut request = self.request(Method::POST, place, body)?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.send(request, wait).await
    }

    /// Asks for the session's stream, from behind the event `last` on.
    pub(super) async fn stream(&self, place: &Place, last: Option<&str>) -> Result<Answered, Cause> {
        let mut request = self.request(Method::GET, Some(place), Carried::nothing())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            request.headers_mut().insert("last-event-id", last);
        }
        self.send(request, self.upstream.terms.bounds.head.min(OPENING)).await
    }

    /// Tells the worker something that nothing comes of, and waits so long for it to have heard.
    pub(super) async fn tell(&self, place: &Place, message: String) {
        let wait = self.upstream.terms.bounds.connect;
        let _ = timeout(wait.saturating_mul(2), self.told(self.post(Some(place), Carried::ours(message.into()), wait)))
            .await;
    }

    /// The same without waiting; the permit is given back when it is done.
    pub(super) fn tell_aside(&self, place: &Arc<Place>, message: String, permit: OwnedSemaphorePermit) {
        let (line, place) = (self.clone(), Arc::clone(place));
        self.drivers.start(async move {
            line.tell(&place, message).await;
            drop(permit);
        });
    }

    /// Says that the session is over.
    pub(super) async fn end(&self, place: &Place) {
        let wait = self.upstream.terms.bounds.connect;
        let sent = async {
            let request = self.request(Method::DELETE, Some(place), Carried::nothing())?;
            self.send(request, wait).await
        };
        let _ = timeout(wait.saturating_mul(2), self.told(sent)).await;
    }

    async fn told(&self, sent: impl Future<Output = Result<Answered, Cause>>) {
        if let Ok(answered) = sent.await {
            let (response, wire) = answered.into_parts();
            read_out(response.into_body(), wire, self.upstream.terms.bounds.most_reply_bytes).await;
        }
    }

    async fn send(&self, request: Request<Carried>, wait: Duration) -> Result<Answered, Cause> {
        let sent = async {
            let wire = self.pool.wire(self.upstream.terms.bounds.connect).await?;
            wire.send(request, wait).await
        };
        let answered = sent.await.inspect_err(|cause| miss(&self.upstream, cause))?;
        self.upstream.health.hear(answered.status());
        Ok(answered)
    }

    fn request(&self, method: Method, place: Option<&Place>, body: Carried) -> Result<Request<Carried>, Cause> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.upstream.terms.path.uri();
        *request.headers_mut() = headers::addressed(self.reference, &self.principal, &self.upstream, place)?;
        Ok(request)
    }
}

/// `notifications/cancelled` for a request of ours.
pub(super) fn cancelled(number: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":"the client has left"}}}}"#
    )
}

/// What is said to a worker that asks its client for something.
pub(super) fn refused(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"this client does not offer it"}}}}"#)
}
