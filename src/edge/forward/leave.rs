//! What becomes of an exchange when its client goes.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kit::tasks::Tasks;
use tokio::time::timeout;

use crate::edge::{Cause, Flight, Permit};

use super::answer;
use super::deadline::Deadline;
use super::pool::Wire;

/// The head of an answer, with the connection it came on.
pub(super) struct Answered {
    response: Response<Incoming>,
    wire: Wire,
}

/// Waiting for an answer. Dropped, it ends the exchange, or goes on without its client if it has leave to.
pub(super) struct Exchange {
    answer: Option<Answering>,
    leave: Option<Leave>,
}

pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Answered, Cause>> + Send>>;

/// The right to finish in the background, with what the exchange holds.
pub(super) struct Leave {
    tasks: Tasks,
    rest: Rest,
    permit: Permit,
    flight: Option<Flight>,
}

/// How much is read of an answer that nobody waits for.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    pub(super) bound: Duration,
    pub(super) deadline: Deadline,
    /// Of an answer that is no event stream.
    pub(super) most_reply_bytes: u64,
}

impl Answered {
    pub(super) fn new(response: Response<Incoming>, wire: Wire) -> Self {
        Self { response, wire }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn into_parts(self) -> (Response<Incoming>, Wire) {
        (self.response, self.wire)
    }
}

impl Exchange {
    pub(super) fn new(answer: Answering, leave: Option<Leave>) -> Self {
        Self { answer: Some(answer), leave }
    }

    pub(super) async fn run(mut self) -> (Result<Answered, Cause>, Option<Leave>) {
        let Some(answer) = self.answer.as_mut() else { return (Err(Cause::Broken), None) };
        // Dropped here, `self` is dropped with both parts, which is how it knows.
        let answered = answer.await;
        self.answer = None;
        (answered, self.leave.take())
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let (Some(answer), Some(leave)) = (self.answer.take(), self.leave.take()) {
            let most = leave.rest.most_reply_bytes;
            leave.finish(async move {
                if let Ok(Answered { response, wire }) = answer.await {
                    let most = if answer::is_events(response.headers()) { u64::MAX } else { most };
                    read_out(response.into_body(), wire, most).await;
                }
            });
        }
    }
}

impl Leave {
    pub(super) fn new(tasks: Tasks, rest: Rest, permit: Permit, flight: Option<Flight>) -> Self {
        Self { tasks, rest, permit, flight }
    }

    /// Resolves when the client cancels the request after all; for ever otherwise.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let cancelled = self.flight.as_ref().map(Flight::cancelled);
        async move {
            match cancelled {
                Some(cancelled) => cancelled.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Lets `rest` run to its end in the background; the permit is given back then.
    pub(super) fn finish(self, rest: impl Future<Output = ()> + Send + 'static) {
        let cancelled = self.cancelled();
        let Self { tasks, rest: Rest { bound, deadline, .. }, permit, flight } = self;
        let bound = bound.min(deadline.left(kit::clock::now()));
        tasks.start(async move {
            tokio::select! {
                () = cancelled => {}
                _ = timeout(bound, rest) => {}
            }
            drop((permit, flight));
        });
    }
}

/// Reads an answer of at most so many bytes to its end for nobody.
pub(super) async fn read_out(mut body: Incoming, wire: Wire, most: u64) {
    let mut left = most;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return };
        let length = frame.data_ref().map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        let Some(fewer) = left.checked_sub(length) else { return };
        left = fewer;
    }
    wire.rest();
}
