//! Where a request enters the path, and its answer leaves it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pin_project::pin_project;
use tokio::sync::watch;
use tower::Service;
use tracing::{Instrument as _, Span, field};

use crate::edge::client::{Arrival, Client, forwarded};
use crate::edge::network::Network;
use crate::edge::{Accepted, AnswerBody, Cut, Ended, Face, Meters, Path, Reference};

use super::activity::{Activity, UnderWay};
use super::ending::Ending;
use super::unread::{Leftovers, Unread};

/// Gives a request its reference, its notes and its client's address.
#[derive(Clone)]
pub(super) struct Enter {
    client: Client,
    face: Face,
    /// Before a proxy, whose word about its client is believed as far as these stand there.
    proxies: Option<Arc<[Network]>>,
    path: Path,
    /// Another path, once there is one.
    paths: watch::Receiver<Path>,
    activity: Arc<Activity>,
    meters: Meters,
    /// HTTP/2 alone has them.
    leftovers: Option<Leftovers>,
}

/// An answer's body that tells its connection's watchdog whether the client reads, and its notes how it ended.
#[pin_project]
pub(super) struct Leaving {
    #[pin]
    body: AnswerBody,
    exchange: UnderWay,
    ending: Ending,
}

impl Enter {
    pub(super) fn new(
        (arrival, proxies): (Arrival, &[Network]),
        mut paths: watch::Receiver<Path>,
        activity: Arc<Activity>,
        meters: Meters,
        leftovers: Option<Leftovers>,
    ) -> Self {
        let path = paths.borrow_and_update().clone();
        let proxies = arrival.is_proxy.then(|| proxies.into());
        Self { client: arrival.client, face: arrival.face, proxies, path, paths, activity, meters, leftovers }
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
        let client = match &self.proxies {
            Some(proxies) => forwarded::client(self.client, request.headers(), proxies),
            None => self.client,
        };
        let span = span(&request, client, reference);
        let notes = self.meters.begin();
        if let Some(record) = notes.record() {
            record.arrives(reference.to_string(), client.to_string(), request.method());
        }
        // Dropped with the future when the client leaves before its answer, and then it says so.
        let mut ending = Ending::new(Arc::clone(&notes), span.clone());
        let is_bare = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let leftovers = self.leftovers.clone().map(|leftovers| (leftovers, Unread::default()));
        let body = match &leftovers {
            Some((_, unread)) => unread.lend(body).map_err(Into::into).boxed_unsync(),
            None => body.map_err(Into::into).boxed_unsync(),
        };
        let request = Accepted::new(parts, body, (client, self.face), (reference, notes));
        let served = span.in_scope(|| self.path.call(request));
        let answered = async move {
            let answer = served.await?;
            if let Some((leftovers, unread)) = leftovers {
                leftovers.discard(&unread);
            }
            ending.begins(&answer, is_bare);
            Ok(answer.map(|body| Leaving { body, exchange, ending }))
        };
        Box::pin(answered.instrument(span))
    }
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let mut this = self.project();
        this.exchange.asked();
        let frame = this.ending.span().in_scope(|| this.body.as_mut().poll_frame(context));
        if let Poll::Ready(piece) = &frame {
            if piece.is_some() {
                this.exchange.handed();
            }
            match piece {
                Some(Ok(piece)) => this.ending.passes(piece, this.body.is_end_stream()),
                Some(Err(Cut)) => this.ending.end(Ended::Cut),
                None => this.ending.end(Ended::Whole),
            }
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
fn span<B>(request: &Request<B>, client: Client, reference: Reference) -> Span {
    let path = request.uri().path();
    tracing::info_span!(
        "request",
        method = %request.method(),
        // A path is printable ASCII, and may be as long as a head.
        path = shown(path),
        version = ?request.version(),
        %client,
        %reference,
        tenant = field::Empty,
        credential = field::Empty,
        call = field::Empty,
    )
}

/// A path for the log. A piece of it that is as long as a token may be one, put there by mistake.
fn shown(path: &str) -> String {
    let path = path.get(..MOST_PATH).unwrap_or(path);
    let piece = |piece: &str| match piece.get(..MOST_PIECE) {
        Some(begin) if piece.len() > MOST_PIECE => format!("{}...", begin.get(..SHOWN_PIECE).unwrap_or_default()),
        _ => piece.to_owned(),
    };
    path.split('/').map(piece).collect::<Vec<_>>().join("/")
}

/// Longer than any name in a path that is served, and shorter than any token.
const MOST_PIECE: usize = 32;
const SHOWN_PIECE: usize = 8;

/// Longer than any that is served.
const MOST_PATH: usize = 64;
