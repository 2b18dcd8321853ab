//! What a request's body leaves unread is kept until its answer is out.
//!
//! An HTTP/2 stream whose body is let go before its answer has ended is reset as cancelled, and clients take the reset
//! for the outcome: a 401 or a 413 would reach nobody. Let go afterwards, it ends without an error.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// A body on loan to the path; what the path lets go of comes back to its [`Unread`].
pub(super) struct Lent {
    body: Option<Incoming>,
    back: Unread,
}

/// Where a lent body comes back to. Dropped with the answer's body, and so after its last byte.
#[derive(Clone, Default)]
pub(super) struct Unread(Arc<Mutex<Option<Incoming>>>);

impl Unread {
    pub(super) fn lend(&self, body: Incoming) -> Lent {
        Lent { body: Some(body), back: self.clone() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *self.back.0.lock().unwrap_or_else(PoisonError::into_inner) = unread;
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}
