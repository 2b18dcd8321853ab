//! What a request's body leaves unread is read and thrown away for a while, next to its answer.
//!
//! A refusal does not wait for the body. Once an HTTP/2 stream has answered and nobody holds its body, it is reset, and
//! a client that is still sending takes the reset for the outcome: a 401 or a 413 would reach nobody. So the body is
//! held for [`LONGEST`] more, which is the time a client has to end it or to see the answer; then the stream is let go,
//! and reset with `NO_ERROR` if it has not ended (RFC 9113, 8.1). Of a few bodies at a time up to [`MOST`] is thrown
//! away, and past it the client meets a closed window; of the others [`LEAST`], and past it they are let go at once.
//! HTTP/1.1 has no streams: hyper reads on or closes there.

use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kit::tasks::Tasks;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Reads what is left of the bodies of one connection, in that connection's tasks.
#[derive(Clone)]
pub(super) struct Leftovers {
    tasks: Tasks,
    large: Arc<Semaphore>,
}

/// A body on loan to the path; what the path lets go of comes back to its [`Unread`].
pub(super) struct Lent {
    body: Option<Incoming>,
    back: Unread,
}

/// Where a lent body comes back to.
#[derive(Clone, Default)]
pub(super) struct Unread(Arc<Mutex<Option<Incoming>>>);

impl Leftovers {
    pub(super) fn new(tasks: Tasks) -> Self {
        Self { tasks, large: Arc::new(Semaphore::new(MOST_LARGE)) }
    }

    /// The answer is known: what the path has left unread is of no more use.
    pub(super) fn discard(&self, unread: &Unread) {
        let Some(mut body) = unread.take() else { return };
        // Not waited for: who sends many bodies at once has less of each read, and no queue.
        let turn = Arc::clone(&self.large).try_acquire_owned().ok();
        let most = if turn.is_some() { MOST } else { LEAST };
        // Dropped with the connection, or at the latest after its time: the stream is let go then.
        self.tasks.start(async move {
            let read = async {
                if is_longer(&mut body, most).await && turn.is_some() {
                    // Its window holds the client, who may take the answer meanwhile.
                    pending::<()>().await;
                }
            };
            let _ = timeout(LONGEST, read).await;
        });
    }
}

impl Unread {
    pub(super) fn lend(&self, body: Incoming) -> Lent {
        Lent { body: Some(body), back: self.clone() }
    }

    fn take(&self) -> Option<Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// Throws a body away, to its end or its fault; or up to `most` bytes, if it goes on after them.
async fn is_longer(body: &mut Incoming, most: usize) -> bool {
    let mut left = most;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        if left == 0 {
            return !body.is_end_stream();
        }
    }
    false
}

/// Several round trips of a distant client, and nothing that a client could hold a connection open with.
const LONGEST: Duration = Duration::from_secs(1);

/// Of one body: more than any ordinary request, so that its client ends it in peace.
const MOST: usize = 1024 * 1024;

/// Of one body while [`MOST_LARGE`] others of its connection are being read: one stream's window.
const LEAST: usize = 64 * 1024;

/// Bodies of one connection at a time that may be read up to [`MOST`]: what they hold unread past that, a window each,
/// is half of the connection's own, and the other half serves the other streams.
const MOST_LARGE: usize = 8;
