//! An answer on its way to the client, chunk by chunk.

mod silence;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::edge::{Cause, Cut, Notes, Reference, Rejection};

use super::answered::Answered;
use super::deadline::Deadline;
use super::farewell::{Farewell, completed, event};
use super::leave::{Leave, read_out};
use super::pool::Wire;
use super::rewrites::Rewrites;
use super::sse::Events;
use silence::Silence;

/// The worker's body, passed on untouched; between its events the relay may speak itself.
pub(super) struct Relay {
    worker: Option<(Incoming, Wire)>,
    /// What was read ahead, to be told first.
    first: Option<Bytes>,
    events: Option<Events>,
    answered: Answered,
    /// What is said once the worker has ended, or that its answer is no whole one.
    last: Option<Result<Bytes, Cut>>,
    /// What the worker has said behind its answer, which nobody gets.
    beyond: usize,
    /// What was said before has had its chance to go out.
    parted: bool,
    leave: Option<Leave>,
    farewell: Farewell,
    rewrites: Option<Rewrites>,
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
            answered: Answered::to(farewell.awaits()),
            last: None,
            beyond: 0,
            parted: false,
            leave,
            farewell,
            rewrites: None,
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

    /// Has the client see some of the stream's messages otherwise.
    pub(super) fn rewrites(&mut self, rewrites: Rewrites) {
        self.rewrites = Some(rewrites);
    }

    /// Puts back what was read ahead.
    pub(super) fn put_back(&mut self, bytes: Bytes) {
        self.first = Some(bytes);
        self.events = self.events.map(|_| Events::new());
        self.answered.again();
    }

    /// Cuts off what does not belong to the answer any more: a stream ends with the event that answers its call.
    fn follow(&mut self, data: &mut Bytes) {
        if let Some(events) = &mut self.events {
            let length = data.len();
            data.truncate(self.answered.follow(data));
            self.beyond = self.beyond.saturating_add(length - data.len());
            events.follow(data);
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

    /// The worker has said everything.
    fn complete(&mut self) {
        self.leave = None;
        if let Some((_, wire)) = self.worker.take() {
            wire.rest();
        }
        let (Farewell::Fault { id, resumable: false }, Some(events)) = (&self.farewell, self.events) else { return };
        if self.answered.is_so() {
            return;
        }
        tracing::warn!("the worker has ended its stream without an answer");
        if let Some(notes) = &self.notes {
            notes.is_refused(&Cause::Broken);
        }
        let error = || event(&Rejection::about(Cause::Broken, Some(id)).body(self.terms.reference));
        // Behind half an event an error would become a part of it.
        self.last = Some(if events.between() { Ok(error()) } else { Err(Cut) });
    }

    /// The call's time is over.
    fn late(&mut self) {
        let after = self.terms.deadline.total();
        tracing::warn!(?after, "the call has taken all its time and is cut");
        self.break_off(Some(Cause::Timeout { after }));
    }

    /// Ends before the worker does; the worker's side ends with it.
    fn break_off(&mut self, cause: Option<Cause>) {
        self.worker = None;
        self.leave = None;
        if self.answered.is_so() {
            // The client has all that it was owed.
            return;
        }
        let between = self.events.is_some_and(Events::between);
        let farewell = std::mem::replace(&mut self.farewell, Farewell::Nothing);
        if let (Some(notes), Some(cause)) = (&self.notes, &cause) {
            notes.is_refused(cause);
        }
        self.why.clone_from(&cause);
        self.last = match (farewell, cause) {
            (Farewell::Completed(id), None) if between => Some(Ok(completed(&id))),
            (Farewell::Fault { id, .. } | Farewell::Completed(id), Some(cause)) if between => {
                let error = Rejection::about(cause, Some(&id)).body(self.terms.reference);
                Some(Ok(event(&error)))
            }
            (_, None) if self.events.is_some() => None,
            // Half a body must not look whole.
            _ => Some(Err(Cut)),
        };
    }

    /// The last thing that is said.
    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if matches!(self.last, Some(Err(Cut))) && !std::mem::replace(&mut self.parted, true) {
            // A server that is told at once forgets what it was given before, the head of the answer too.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.last.take().map(|last| last.map(Frame::data)))
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        if let Some(mut first) = this.first.take() {
            this.follow(&mut first);
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if this.worker.is_none() {
            return this.poll_last(context);
        }
        if this.ends.as_mut().is_some_and(|ends| ends.as_mut().poll(context).is_ready()) {
            this.ends = None;
            this.break_off(None);
            return this.poll_last(context);
        }
        loop {
            // Also for a worker that is never silent.
            if this.terms.deadline.left(kit::clock::now()).is_zero() {
                this.late();
                break;
            }
            match this.poll_worker(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are the worker's own matter.
                    let mut data = frame.into_data().unwrap_or_default();
                    this.passed = this.passed.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
                    if this.passed > this.terms.most_bytes {
                        let most = this.terms.most_bytes;
                        tracing::warn!(most, "the worker's answer is too large and is cut");
                        this.break_off(Some(Cause::ReplyTooLarge { most }));
                        break;
                    }
                    this.follow(&mut data);
                    if let Some(rewrites) = &mut this.rewrites {
                        match rewrites.pass(&data) {
                            Ok(told) => data = told,
                            Err(cause) => {
                                this.break_off(Some(cause));
                                break;
                            }
                        }
                    }
                    this.spoken = this.heard;
                    // A reader that was told the length does not ask for more after the last byte.
                    if this.worker.as_ref().is_some_and(|(body, _)| body.is_end_stream()) {
                        this.complete();
                    } else if this.beyond > MOST_BEYOND {
                        this.break_off(None);
                    }
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    if this.worker.is_none() {
                        break;
                    }
                }
                Poll::Ready(None) => {
                    this.complete();
                    break;
                }
                Poll::Ready(Some(Err(fault))) => {
                    tracing::warn!(%fault, "the worker broke off within its answer");
                    this.break_off(Some(Cause::Broken));
                    break;
                }
                Poll::Pending => match std::task::ready!(this.poll_silence(context)) {
                    Silence::Comment => return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT))))),
                    Silence::Over => {
                        let after = this.terms.idle;
                        tracing::warn!(?after, "the worker fell silent within its answer");
                        this.break_off(Some(Cause::Timeout { after }));
                        break;
                    }
                    Silence::Late => {
                        this.late();
                        break;
                    }
                },
            }
        }
        this.poll_last(context)
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

const COMMENT: &[u8] = b": keep-alive\n\n";

/// What a worker says behind its answer is read so far for its connection's sake, and then its connection ends too.
const MOST_BEYOND: usize = 64 * 1024;
