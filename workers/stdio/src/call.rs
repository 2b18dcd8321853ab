//! One call that runs in a child, from its request to its answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kit::clock;
use tokio::time::Sleep;

use crate::frame::Frame;
use crate::outlet::{Ear, End, Said, outlet};
use crate::router::{Begun, Busy, Kin};
use crate::server::Server;

/// A call whose answer has not come. Where there are no sessions, dropping it cancels it, as its era says; in a session
/// the child goes on, and its answer is dropped.
pub(crate) struct Call {
    server: Arc<Server>,
    key: u64,
    /// As the client wrote it.
    pub(crate) id: String,
    ear: Ear,
    deadline: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

/// Why a call has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbegun {
    Busy(Busy),
    /// The child did not take the line, or not in time; what it has read of it is not known.
    Unsent,
}

impl Call {
    /// Hands a request to the child. It may take as long as `longest`, its answer included; without one, it lasts as long
    /// as its client stays.
    pub(crate) async fn begin(
        server: &Arc<Server>,
        text: &str,
        frame: &Frame<'_>,
        longest: Option<Duration>,
    ) -> Result<Self, Unbegun> {
        let (mouth, ear) = outlet(server.line);
        let until = longest.and_then(|longest| clock::now().checked_add(longest));
        let begun = server.router().begin(text, frame, mouth, until);
        let Begun { key, line } = begun.map_err(Unbegun::Busy)?;
        let mut call = Self {
            server: Arc::clone(server),
            key,
            id: frame.id().unwrap_or_default().to_owned(),
            ear,
            deadline: longest.map(|longest| Box::pin(tokio::time::sleep(longest))),
            is_over: false,
        };
        if server.say(line).await {
            return Ok(call);
        }
        call.is_over = true;
        server.router().forget(key);
        Err(Unbegun::Unsent)
    }

    /// What the child says next of this call. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Said, End> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Said, End>> {
        if let Poll::Ready(said) = self.ear.poll(cx) {
            self.is_over = !matches!(said, Ok(Said::Before(_)));
            return Poll::Ready(said);
        }
        if let Some(deadline) = &mut self.deadline {
            ready!(deadline.as_mut().poll(cx));
            self.is_over = true;
            self.server.leave(self.key);
            return Poll::Ready(Err(End::Late));
        }
        Poll::Pending
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over && self.server.kin == Kin::Everybody {
            self.server.leave(self.key);
        }
    }
}
