//! One request of a modern client's, from its arrival to its answer, in a session of the edge's.
//!
//! It runs beside the client's connection, so that a client's leaving finds someone who tells the worker.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::edge::forward::answer::{self, Absent, Expects, Shape};
use crate::edge::forward::carried::Carried;
use crate::edge::forward::leave::Answered;
use crate::edge::{Cause, Permit, Rejection};

use super::ask::{Ask, Wants};
use super::errand::{self, Reply};
use super::kept::Keeping;
use super::line::{self, Line};
use super::messages::Messages;
use super::session::Use;
use super::stream::{COMMENT, event};
use super::told::{self, Said};

/// What the client's side gets.
pub(super) enum Piece {
    /// The answer, alone.
    Whole(StatusCode, Bytes),
    /// Of an answer that comes as a stream.
    Event(Bytes),
    /// The end of such a stream.
    End,
    /// The end of one that is not whole: why, and how the client is told.
    Failed(Cause, Bytes),
    /// In place of any answer.
    Refused(Cause),
}

pub(super) struct Exchange {
    line: Line,
    keeping: Keeping,
    ask: Ask,
    tell: mpsc::Sender<Piece>,
    comment: Duration,
    /// Given back when it ends, which may be after the client has left.
    permit: Permit,
    deadline: Instant,
    /// A part of the answer has been told.
    begun: bool,
}

/// Why there will be no answer.
enum Stop {
    /// The client has gone.
    Gone,
    Fault(Cause),
}

/// What came of sending the request into a session.
enum Sent {
    Answered,
    /// The worker does not know the session, and so has not carried out the request.
    Forgotten,
}

impl Exchange {
    pub(super) fn new(
        (line, keeping): (Line, Keeping),
        (ask, permit): (Ask, Permit),
        tell: mpsc::Sender<Piece>,
        comment: Duration,
    ) -> Self {
        let deadline = Instant::from_std(kit::clock::now()) + line.upstream.terms.bounds.total;
        Self { line, keeping, ask, tell, comment, permit, deadline, begun: false }
    }

    pub(super) async fn run(mut self) {
        let last = match self.answer().await {
            Ok(()) | Err(Stop::Gone) => Piece::End,
            Err(Stop::Fault(cause)) if self.begun => {
                let error = Rejection::about(cause.clone(), Some(&self.ask.id)).body(self.line.reference);
                Piece::Failed(cause, event(&error))
            }
            Err(Stop::Fault(cause)) => Piece::Refused(cause),
        };
        // The client may have gone, and then nobody is left to be told.
        let _ = self.tell.send(last).await;
    }

    async fn answer(&mut self) -> Result<(), Stop> {
        for _ in 0..SENDS {
            // Not given up when the client goes: others may wait for the same session.
            let used = self.keeping.session(&self.line).await?;
            if self.ask.wants == Wants::Discovery {
                // What it once said of itself is worth nothing if it is not there any more, or is another by now.
                if self.wanted(errand::ask(&used, &self.line, "ping", "")).await?? == Reply::Forgotten {
                    used.forget();
                    continue;
                }
                return self.say(Piece::Whole(StatusCode::OK, told::discovery(&self.ask.id, &used))).await;
            }
            let logged = self.ask.level.filter(|_| used.has_logs()).map(|level| used.logs.want(level));
            if logged.is_some() && self.wanted(errand::set_level(&used, &self.line)).await? == Reply::Forgotten {
                used.forget();
                continue;
            }
            let number = used.number();
            match self.send(&used, number).await {
                Ok(Sent::Answered) => return Ok(()),
                Ok(Sent::Forgotten) => {
                    used.forget();
                    // Its word may be wrong, and what has an effect must not have it twice.
                    if self.ask.wants == Wants::Effect {
                        return Err(Stop::Fault(Cause::Forgotten));
                    }
                }
                Err(stop) => {
                    let leaves = matches!(stop, Stop::Gone | Stop::Fault(Cause::Timeout { .. }));
                    // To a worker without sessions the end of the exchange says it.
                    if leaves && used.place.upstream.is_some() {
                        self.line.tell(&used.place, line::cancelled(number)).await;
                    }
                    return Err(stop);
                }
            }
        }
        Err(Stop::Fault(FORGETFUL))
    }

    async fn send(&mut self, used: &Use, number: u64) -> Result<Sent, Stop> {
        let body = self.ask.written(number).ok_or(Cause::Unparsable)?;
        // The original counts for both; it stays for as long as it may have to go out again.
        let body = Carried::ours(body);
        let answered = self.wanted(self.line.post(Some(&used.place), body, self.line.upstream.terms.bounds.head));
        let answered = answered.await??;
        self.pass(answered, used, number).await
    }

    /// Tells the client what the worker says, to the answer.
    async fn pass(&mut self, answered: Answered, used: &Use, number: u64) -> Result<Sent, Stop> {
        let (response, wire) = answered.into_parts();
        let sessionful = used.place.upstream.is_some();
        let absent = if sessionful { Absent::Session } else { Absent::Nothing };
        let shape = match answer::judge(&response, Expects::Result, absent) {
            Err(Cause::UnknownSession) => return Ok(Sent::Forgotten),
            shape => shape?,
        };
        let status = response.status();
        if status.is_success() {
            self.ask.give_up_body();
        }
        let refusal = (!status.is_success()).then_some(status);
        let bounds = &self.line.upstream.terms.bounds;
        let (idle, most) = (bounds.idle, usize::try_from(bounds.most_reply_bytes).unwrap_or(usize::MAX));
        let events = shape == Shape::Events;
        let messages = Messages::new((response.into_body(), wire), events, most);
        let mut messages = messages.within(self.permit.reserve_nothing());
        loop {
            let silence = idle.saturating_sub(kit::clock::now().duration_since(messages.heard));
            if silence.is_zero() {
                return Err(Stop::Fault(Cause::Timeout { after: idle }));
            }
            let wait = if events { silence.min(self.comment) } else { silence };
            let Ok(message) = self.wanted(timeout(wait, messages.next())).await? else {
                if events {
                    self.aside(Bytes::from_static(COMMENT)).await?;
                }
                continue;
            };
            let message = message?.ok_or(Cause::Broken)?;
            if sessionful && status == StatusCode::BAD_REQUEST && told::is_of_lost_session(&message) {
                return Ok(Sent::Forgotten);
            }
            match Said::judge(&message, (&self.ask, number, used), refusal)? {
                Said::Answer(status, text) => {
                    messages.rest(&self.line.drivers);
                    let piece = if self.begun {
                        Piece::Event(message.put(event(&text))?)
                    } else {
                        Piece::Whole(status, message.put(text)?)
                    };
                    self.say(piece).await?;
                    return Ok(Sent::Answered);
                }
                Said::Aside(text) => self.aside(message.put(event(&text))?).await?,
                Said::Asked { id, method } => self.wanted(used.refuse(&self.line, &id, &method)).await?,
                // A worker says it on whichever stream there is.
                Said::Change(change) => used.feed.tell(&change),
                Said::Nothing => {}
            }
        }
    }

    async fn aside(&mut self, event: Bytes) -> Result<(), Stop> {
        self.begun = true;
        self.say(Piece::Event(event)).await
    }

    async fn say(&self, piece: Piece) -> Result<(), Stop> {
        self.wanted(self.tell.send(piece)).await?.map_err(|_unread| Stop::Gone)
    }

    /// Waits as long as the client does and the request may take.
    async fn wanted<T>(&self, wait: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.tell.closed() => Err(Stop::Gone),
            done = timeout_at(self.deadline, wait) => {
                let after = self.line.upstream.terms.bounds.total;
                done.map_err(|_late| Stop::Fault(Cause::Timeout { after }))
            }
        }
    }
}

impl From<Cause> for Stop {
    fn from(cause: Cause) -> Self {
        Self::Fault(cause)
    }
}

/// A request without effect is sent once more where the worker says that it knows no such session.
pub(super) const SENDS: usize = 2;

pub(super) const FORGETFUL: Cause = Cause::WorkerAnswerUnusable("it forgets each session as soon as it is open");
