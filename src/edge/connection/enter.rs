//! Where a request enters the path, and its answer leaves it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pin_project::pin_project;
use tokio::sync::watch;
use tower::Service;
use tracing::{Span, field};

use crate::edge::client::Client;
use crate::edge::{Accepted, AnswerBody, Cut, Path, Reference};

use super::activity::{Activity, UnderWay};
use super::unread::{Leftovers, Unread};

/// Gives a request its reference and its client's address.
#[derive(Clone)]
pub(super) struct Enter {
    client: Client,
    path: Path,
    /// Another path, once there is one.
    paths: watch::Receiver<Path>,
    activity: Arc<Activity>,
    /// HTTP/2 alone has them.
    leftovers: Option<Leftovers>,
}

/// An answer's body that tells its connection's watchdog whether the client reads.
#[pin_project]
pub(super) struct Leaving {
    #[pin]
    body: AnswerBody,
    exchange: UnderWay,
}

impl Enter {
    pub(super) fn new(
        client: Client,
        mut paths: watch::Receiver<Path>,
        activity: Arc<Activity>,
        leftovers: Option<Leftovers>,
    ) -> Self {
        let path = paths.borrow_and_update().clone();
        Self { client, path, paths, activity, leftovers }
    }
}

impl Service<Request<Incoming>> for Enter {
    type Response = Response<Leaving>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Leaving>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        // An error means that the edge is ending, with the path that it has.
        if self.paths.has_changed().unwrap_or(false) {
            self.path = self.paths.borrow_and_update().clone();
        }
        let exchange = self.activity.begin();
        let reference = Reference::fresh();
        Span::current().record("reference", field::display(reference)).record("client", field::display(self.client));
        let (parts, body) = request.into_parts();
        let leftovers = self.leftovers.clone().map(|leftovers| (leftovers, Unread::default()));
        let body = match &leftovers {
            Some((_, unread)) => unread.lend(body).map_err(Into::into).boxed_unsync(),
            None => body.map_err(Into::into).boxed_unsync(),
        };
        let served = self.path.call(Accepted::new(parts, body, self.client, reference));
        Box::pin(async move {
            let answer = served.await?;
            if let Some((leftovers, unread)) = leftovers {
                leftovers.discard(&unread);
            }
            Ok(answer.map(|body| Leaving { body, exchange }))
        })
    }
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.project();
        this.exchange.asked();
        let frame = this.body.poll_frame(context);
        if matches!(frame, Poll::Ready(Some(_))) {
            this.exchange.handed();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The span of a request; what is not known yet is filled in on the way.
pub(super) fn span<B>(request: &Request<B>) -> Span {
    tracing::info_span!(
        "request",
        method = %request.method(),
        path = request.uri().path(),
        version = ?request.version(),
        client = field::Empty,
        reference = field::Empty,
        tenant = field::Empty,
        credential = field::Empty,
        call = field::Empty,
    )
}

/// The one line of a request.
pub(super) fn answered<B>(response: &Response<B>, latency: Duration, _span: &Span) {
    tracing::info!(status = response.status().as_u16(), ?latency, "answered");
}
