//! Where a child's words go: to the call that they answer or belong to, else to the session's stream, never to two.
//!
//! Each call has a number of ours, which is its id and its progress token on the child's side. So equal ids of two
//! clients never meet, whatever a child makes of the way a number is written; what goes back has the client's own bytes
//! again. Pure: lines and names in, lines and outlets out.

mod route;

use std::time::Instant;

use crate::frame::{Frame, Kind, same};
use crate::outlet::{End, Mouth, Said};
use crate::splice::Splice;
use crate::words::{self, CANCELLED, INTERNAL, LISTEN, LOG_LEVEL, METHOD_NOT_FOUND, PROGRESS, SUBSCRIPTION};

pub(crate) use route::{Begun, Busy, Route};

/// For whom a child runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kin {
    /// One session's client, which the child may ask and tell what it likes.
    Session,
    /// Everybody, in the era without sessions: each word belongs to one request.
    Everybody,
}

/// The calls of one child.
#[derive(Debug)]
pub(crate) struct Router {
    kin: Kin,
    most: usize,
    most_subscriptions: usize,
    last: u64,
    /// In the order in which they began.
    calls: Vec<Call>,
    /// Calls that are over for us and of which the child has not been told. They count until it has.
    left: Vec<u64>,
    stream: Option<Mouth>,
    is_ended: bool,
}

#[derive(Debug)]
struct Call {
    key: u64,
    id: String,
    token: Option<String>,
    is_subscription: bool,
    wants_log: bool,
    until: Option<Instant>,
    mouth: Mouth,
}

impl Router {
    pub(crate) fn new(kin: Kin, most: usize, most_subscriptions: usize) -> Self {
        Self {
            kin,
            most,
            most_subscriptions,
            last: 0,
            calls: Vec::new(),
            left: Vec::new(),
            stream: None,
            is_ended: false,
        }
    }

    /// Begins the call that a request of a client asks for, to be over at `until`.
    pub(crate) fn begin(
        &mut self,
        text: &str,
        frame: &Frame<'_>,
        mouth: Mouth,
        until: Option<Instant>,
    ) -> Result<Begun, Busy> {
        let Some(id) = frame.id() else { return Err(Busy::SameId) };
        let is_subscription = frame.method() == LISTEN;
        if self.is_ended {
            return Err(Busy::Ended);
        }
        // Without a session, each client counts for itself.
        if self.kin == Kin::Session && self.calls.iter().any(|call| same(&call.id, id)) {
            return Err(Busy::SameId);
        }
        if is_subscription {
            if self.calls.iter().filter(|call| call.is_subscription).count() >= self.most_subscriptions {
                return Err(Busy::Subscribed);
            }
        } else if self.calls.iter().filter(|call| !call.is_subscription).count() + self.left.len() >= self.most {
            return Err(Busy::Full);
        }
        self.last += 1;
        let key = self.last;
        let token = frame.wanted_token();
        let mut splice = Splice::new(text);
        splice.replace(id, key.to_string());
        if let Some(token) = token {
            splice.replace(token, key.to_string());
        }
        self.calls.push(Call {
            key,
            id: id.to_owned(),
            token: token.map(str::to_owned),
            is_subscription,
            wants_log: frame.meta(LOG_LEVEL).is_some(),
            until,
            mouth,
        });
        Ok(Begun { key, line: splice.line() })
    }

    /// Takes a call out whose client has left or been answered by us; the child is to be told. A late answer is dropped.
    pub(crate) fn leave(&mut self, key: u64) -> Option<Mouth> {
        let call = self.take(key)?;
        self.left.push(key);
        Some(call.mouth)
    }

    /// Takes a call out without a word to the child.
    pub(crate) fn forget(&mut self, key: u64) -> Option<Mouth> {
        self.take(key).map(|call| call.mouth)
    }

    /// The number of the call that a client means, by the id that it gave.
    pub(crate) fn meant(&self, id: &str) -> Option<u64> {
        self.calls.iter().find(|call| same(&call.id, id)).map(|call| call.key)
    }

    /// Leaves the calls that are over at `now`, though nobody may wait for them any more.
    pub(crate) fn leave_late(&mut self, now: Instant) {
        for key in self.keys(|call| call.until.is_some_and(|until| until <= now)) {
            if let Some(mouth) = self.leave(key) {
                mouth.end(End::Late);
            }
        }
    }

    /// What the child has to be told of: the calls left since the last time.
    pub(crate) fn take_left(&mut self) -> Vec<Vec<u8>> {
        self.left.drain(..).map(words::cancel).collect()
    }

    pub(crate) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Takes the session's stream unless somebody holds it.
    pub(crate) fn open_stream(&mut self, mouth: Mouth) -> bool {
        let is_free = !self.is_ended && self.stream.as_ref().is_none_or(Mouth::is_closed);
        if is_free {
            self.stream = Some(mouth);
        }
        is_free
    }

    /// Ends what lasts for ever: the session's stream, and subscriptions, with the answer that says so.
    pub(crate) fn close_streams(&mut self) {
        self.stream = None;
        for key in self.keys(|call| call.is_subscription) {
            self.complete(key);
        }
    }

    /// Whom one line of the child is for.
    pub(crate) fn route(&mut self, text: &str, frame: &Frame<'_>, kind: Kind) -> Route {
        match (kind, frame.method()) {
            (Kind::Response, _) => self.answer(text, frame),
            (Kind::Notification, PROGRESS) => self.progress(text, frame),
            _ if self.kin == Kin::Everybody => self.within(text, frame, kind),
            _ => self.aside(text, frame, kind),
        }
    }

    /// An answer that is too long to be read went to this call.
    pub(crate) fn too_long(&mut self, key: u64) {
        if let Some(mouth) = self.forget(key) {
            mouth.end(End::TooLong);
        }
    }

    /// Whether somebody waits for this child's words. A call that its client has left keeps no session.
    pub(crate) fn is_in_use(&self) -> bool {
        self.calls.iter().any(|call| !call.mouth.is_closed())
            || self.stream.as_ref().is_some_and(|stream| !stream.is_closed())
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The child is gone: whoever waits learns it at once.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
        self.calls.clear();
        self.left.clear();
        self.stream = None;
    }

    fn answer(&mut self, text: &str, frame: &Frame<'_>) -> Route {
        let Some(id) = frame.id() else { return Route::Nobody };
        let Some(call) = id.parse().ok().and_then(|key| self.take(key)) else { return Route::Nobody };
        let mut splice = Splice::new(text);
        splice.replace(id, call.id.clone());
        if let Some(subscription) = frame.result(&["_meta", SUBSCRIPTION]).filter(|named| *named == id) {
            splice.replace(subscription, call.id);
        }
        Route::To(call.mouth, Said::Answer(splice.line()), Some(call.key))
    }

    fn progress(&self, text: &str, frame: &Frame<'_>) -> Route {
        let Some(named) = frame.param("progressToken") else { return Route::Nobody };
        let call = named.parse::<u64>().ok().and_then(|key| self.calls.iter().find(|call| call.key == key));
        let Some((call, token)) = call.and_then(|call| Some((call, call.token.clone()?))) else { return Route::Nobody };
        let mut splice = Splice::new(text);
        splice.replace(named, token);
        Route::To(call.mouth.clone(), Said::Before(splice.line()), Some(call.key))
    }

    /// In the era without sessions: a word of a subscription names it, and all else belongs to a request or to nobody.
    fn within(&mut self, text: &str, frame: &Frame<'_>, kind: Kind) -> Route {
        if kind == Kind::Request {
            let why = "this revision has no requests of a server; answer with input_required";
            return frame
                .id()
                .map_or(Route::Nobody, |id| Route::Back(words::error(Some(id), METHOD_NOT_FOUND, why, None)));
        }
        let keyed = |named: &str| named.parse::<u64>().ok();
        if frame.method() == CANCELLED {
            // The server ends a subscription; the client is told by the answer that ends its stream.
            if let Some(key) = frame.param("requestId").and_then(keyed)
                && self.calls.iter().any(|call| call.key == key && call.is_subscription)
            {
                self.complete(key);
            }
            return Route::Nobody;
        }
        if let Some(named) = frame.meta(SUBSCRIPTION) {
            let Some(call) = keyed(named).and_then(|key| self.calls.iter().find(|call| call.key == key)) else {
                return Route::Nobody;
            };
            let mut splice = Splice::new(text);
            splice.replace(named, call.id.clone());
            return Route::To(call.mouth.clone(), Said::Before(splice.line()), Some(call.key));
        }
        // A log line names nobody. Where one call alone has asked for any, it can only be that one's.
        let mut asked = self.calls.iter().filter(|call| call.wants_log);
        match (frame.method(), asked.next(), asked.next()) {
            ("notifications/message", Some(call), None) => {
                Route::To(call.mouth.clone(), Said::Before(Splice::new(text).line()), Some(call.key))
            }
            _ => Route::Nobody,
        }
    }

    /// In a session: what names no call goes where the client is sure to listen.
    fn aside(&self, text: &str, frame: &Frame<'_>, kind: Kind) -> Route {
        let newest = self.calls.iter().rev().find(|call| !call.mouth.is_closed());
        let newest = newest.map(|call| (&call.mouth, Some(call.key)));
        let stream = self.stream.as_ref().filter(|stream| !stream.is_closed()).map(|stream| (stream, None));
        let is_of_no_call = frame.method().ends_with("/list_changed") || frame.method().ends_with("/updated");
        let found = if is_of_no_call { stream.or(newest) } else { newest.or(stream) };
        match (found, frame.id()) {
            (Some((mouth, key)), _) => Route::To(mouth.clone(), Said::Before(Splice::new(text).line()), key),
            // A server that asks nobody would wait for ever.
            (None, Some(id)) if kind == Kind::Request => Route::Back(words::error(Some(id), INTERNAL, NOBODY, None)),
            (None, _) => Route::Nobody,
        }
    }

    /// Ends a subscription as a server does that ends it by itself.
    fn complete(&mut self, key: u64) {
        let Some(id) = self.calls.iter().find(|call| call.key == key).map(|call| call.id.clone()) else { return };
        if let Some(mouth) = self.leave(key) {
            mouth.answer(words::complete(&id));
        }
    }

    fn take(&mut self, key: u64) -> Option<Call> {
        let index = self.calls.iter().position(|call| call.key == key)?;
        Some(self.calls.remove(index))
    }

    fn keys(&self, which: impl Fn(&Call) -> bool) -> Vec<u64> {
        self.calls.iter().filter(|call| which(call)).map(|call| call.key).collect()
    }
}

const NOBODY: &str = "no call is running and no stream is open, so the client cannot be asked";

#[cfg(test)]
mod tests;
