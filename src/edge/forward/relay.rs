//! An answer on its way to the client, chunk by chunk.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::edge::{Cause, Cut, Notes, Reference, Rejection, RequestId};

use super::answered::Answered;
use super::deadline::Deadline;
use super::leave::{Leave, read_out};
use super::pool::Wire;
use super::sse::Events;

/// The worker's body, passed on untouched; between its events the relay may speak itself.
pub(super) struct Relay {
    worker: Option<(Incoming, Wire)>,
    /// What was read ahead, to be told first.
    first: Option<Bytes>,
    events: Option<Events>,
    answered: Answered,
    /// What is said once the worker has ended.
    last: Option<Bytes>,
    leave: Option<Leave>,
    farewell: Farewell,
    terms: Terms,
    ends: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Why the answer was cut.
    why: Option<Cause>,
    /// Where that is written down too.
    notes: Option<Arc<Notes>>,
    passed: u64,
    heard: Instant,
    spoken: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// How an answer is passed on.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) events: bool,
    /// Between two chunks of the worker's.
    pub(super) idle: Duration,
    pub(super) deadline: Deadline,
    /// Of an answer that is no event stream.
    pub(super) most_bytes: u64,
    /// Between two signs of life on an event stream.
    pub(super) comment: Duration,
    pub(super) reference: Reference,
}

/// What is said when a stream ends before the worker has ended it.
pub(super) enum Farewell {
    Nothing,
    /// A subscription is complete when the edge stops.
    Completed(RequestId),
    /// A call whose answer is still owed gets an error in its place.
    Fault {
        id: RequestId,
        /// Its client may come back for the answer, so a worker that ends the stream without one has not failed.
        resumable: bool,
    },
}

impl Relay {
    pub(super) fn new(body: Incoming, wire: Wire, terms: Terms, leave: Option<Leave>, farewell: Farewell) -> Self {
        let now = kit::clock::now();
        let ends: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = match &leave {
            Some(leave) => Some(Box::pin(leave.cancelled())),
            None => None,
        };
        Self {
            worker: Some((body, wire)),
            first: None,
            events: terms.events.then(Events::new),
            answered: Answered::default(),
            last: None,
            leave,
            farewell,
            terms,
            ends,
            why: None,
            notes: None,
            passed: 0,
            heard: now,
            spoken: now,
            alarm: None,
        }
    }

    /// Has it written down why the answer is cut, if it is.
    pub(super) fn noted(mut self, notes: Arc<Notes>) -> Self {
        self.notes = Some(notes);
        self
    }

    /// Ends the stream when `ends` resolves, saying farewell.
    pub(super) fn ends_when(&mut self, ends: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.ends = Some(ends);
    }

    /// Puts back what was read ahead.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        self.first = Some(bytes);
        self.events = self.events.map(|_| Events::new());
        self.answered = Answered::default();
    }

    fn follow(&mut self, data: &[u8]) {
        if let Some(events) = &mut self.events {
            events.follow(data);
            self.answered.follow(data);
        }
    }

    /// Why it has just been cut.
    pub(super) fn why(&mut self) -> Cause {
        self.why.take().unwrap_or(Cause::Broken)
    }

    fn poll_worker(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some((body, _)) = self.worker.as_mut() else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        self.heard = kit::clock::now();
        Poll::Ready(frame)
    }

    /// The worker is silent: until when may it be?
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Silence> {
        loop {
            let now = kit::clock::now();
            if now.duration_since(self.heard) >= self.terms.idle {
                return Poll::Ready(Silence::Over);
            }
            let left = self.terms.deadline.left(now);
            if left.is_zero() {
                return Poll::Ready(Silence::Late);
            }
            let comments = self.events.is_some_and(Events::between);
            let due = now.duration_since(self.spoken) >= self.terms.comment;
            if comments && due {
                self.spoken = now;
                return Poll::Ready(Silence::Comment);
            }
            let patience = self.terms.idle.saturating_sub(now.duration_since(self.heard)).min(left);
            let quiet = self.terms.comment.saturating_sub(now.duration_since(self.spoken));
            let wait = if comments { patience.min(quiet) } else { patience };
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
            if alarm.is_elapsed() {
                alarm.set(tokio::time::sleep(wait));
            }
            std::task::ready!(alarm.as_mut().poll(context));
        }
    }

    /// The worker has said everything.
    fn complete(&mut self) {
        self.leave = None;
        if let Some((_, wire)) = self.worker.take() {
            wire.rest();
        }
        if let Farewell::Fault { id, resumable: false } = &self.farewell
            && self.events.is_some_and(Events::between)
            && !self.answered.is_so()
        {
            tracing::warn!("the worker has ended its stream without an answer");
            self.last = Some(event(&Rejection::about(Cause::Broken, Some(id)).body(self.terms.reference)));
        }
    }

    /// The call's time is over.
    fn late(&mut self) -> Option<Result<Frame<Bytes>, Cut>> {
        let after = self.terms.deadline.total();
        tracing::warn!(?after, "the call has taken all its time and is cut");
        self.break_off(Some(Cause::Timeout { after }))
    }

    /// Ends before the worker does; the worker's side ends with it.
    fn break_off(&mut self, cause: Option<Cause>) -> Option<Result<Frame<Bytes>, Cut>> {
        self.worker = None;
        self.leave = None;
        let between = self.events.is_some_and(Events::between);
        let farewell = std::mem::replace(&mut self.farewell, Farewell::Nothing);
        if let (Some(notes), Some(cause)) = (&self.notes, &cause) {
            notes.is_refused(cause);
        }
        self.why.clone_from(&cause);
        match (farewell, cause) {
            (Farewell::Completed(id), None) if between => Some(Ok(Frame::data(completed(&id)))),
            // The client has all that it was owed.
            (Farewell::Fault { .. }, Some(_)) if between && self.answered.is_so() => None,
            (Farewell::Fault { id, .. } | Farewell::Completed(id), Some(cause)) if between => {
                let error = Rejection::about(cause, Some(&id)).body(self.terms.reference);
                Some(Ok(Frame::data(event(&error))))
            }
            (_, None) if self.events.is_some() => None,
            // Half a body must not look whole.
            _ => Some(Err(Cut)),
        }
    }
}

enum Silence {
    Comment,
    Over,
    Late,
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            this.follow(&first);
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if this.worker.is_none() {
            return Poll::Ready(this.last.take().map(|last| Ok(Frame::data(last))));
        }
        if this.ends.as_mut().is_some_and(|ends| ends.as_mut().poll(context).is_ready()) {
            this.ends = None;
            return Poll::Ready(this.break_off(None));
        }
        // Also for a worker that is never silent.
        if this.terms.deadline.left(kit::clock::now()).is_zero() {
            return Poll::Ready(this.late());
        }
        match this.poll_worker(context) {
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers are the worker's own matter.
                let data = frame.into_data().unwrap_or_default();
                this.passed = this.passed.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
                if this.passed > this.terms.most_bytes {
                    let most = this.terms.most_bytes;
                    tracing::warn!(most, "the worker's answer is too large and is cut");
                    return Poll::Ready(this.break_off(Some(Cause::ReplyTooLarge { most })));
                }
                this.follow(&data);
                this.spoken = this.heard;
                // A reader that was told the length does not ask for more after the last byte.
                if this.worker.as_ref().is_some_and(|(body, _)| body.is_end_stream()) {
                    this.complete();
                }
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Poll::Ready(None) => {
                this.complete();
                Poll::Ready(this.last.take().map(|last| Ok(Frame::data(last))))
            }
            Poll::Ready(Some(Err(fault))) => {
                tracing::warn!(%fault, "the worker broke off within its answer");
                Poll::Ready(this.break_off(Some(Cause::Broken)))
            }
            Poll::Pending => match std::task::ready!(this.poll_silence(context)) {
                Silence::Comment => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT))))),
                Silence::Over => {
                    let after = this.terms.idle;
                    tracing::warn!(?after, "the worker fell silent within its answer");
                    Poll::Ready(this.break_off(Some(Cause::Timeout { after })))
                }
                Silence::Late => Poll::Ready(this.late()),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.worker.is_none() && self.last.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.worker, &self.first, &self.events) {
            (Some((body, _)), None, None) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let (Some((body, wire)), Some(leave)) = (self.worker.take(), self.leave.take()) {
            leave.finish(read_out(body, wire, self.terms.most_bytes.saturating_sub(self.passed)));
        }
    }
}

/// The end of a subscription.
pub(super) fn completed(id: &RequestId) -> Bytes {
    let id = id.raw();
    event(
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
        .as_bytes(),
    )
}

fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"].concat().into()
}

const COMMENT: &[u8] = b": keep-alive\n\n";
