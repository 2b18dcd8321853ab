//! A request body on its way to the worker, with its share of the byte budget.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::edge::Reserved;

/// One piece, or none; the budget is free again once the connection has written it.
pub(super) struct Carried(Option<Bytes>);

impl Carried {
    pub(super) fn nothing() -> Self {
        Self(None)
    }

    pub(super) fn new(bytes: Bytes, reserved: Reserved) -> Self {
        Self(Some(reserved.around(bytes)))
    }

    /// A short message of the edge's own.
    pub(super) fn ours(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }
}

impl Body for Carried {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
    }
}
