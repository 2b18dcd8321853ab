//! A modern client before a worker that knows sessions only.
//!
//! The edge keeps one session with the worker for each tenant, never shared with another, and carries each request
//! through it under a number of its own. A request is sent once; only when the worker says that it has forgotten the
//! session, and so cannot have carried it out, does it go out once more in a new one. What such a worker asks of its
//! client (elicitation, sampling, roots) is refused to it: the edge declares no such capability. Answers are held whole
//! before they are told, within the byte budget of request bodies.
//!
//! ```text
//! ask       a request as the worker is to see it
//! kept      the sessions, one for a tenant and its worker
//! session   one of them: opened, counted, ended
//! line      how messages get to the worker
//! messages  what comes back, message by message
//! told      a message as the client is to see it
//! unmarked  a list of tools that asks for no headers
//! exchange  one request from its ask to its answer
//! listen    one subscription from its ask to its end
//! level     how grave a line of the worker's log is
//! logs      from which severity on the worker logs in a session
//! wishes    what a subscription is to tell of
//! feed      who listens in a session
//! source    the stream on which the worker tells of changes, one for all who listen
//! watchlist which resources the worker is to watch
//! errand    what the edge asks the worker on its own account
//! stream    the answer on its way to the client
//! ```

mod ask;
mod errand;
mod exchange;
mod feed;
mod kept;
mod level;
mod line;
mod listen;
mod logs;
mod messages;
mod patch;
mod session;
mod source;
mod stream;
mod told;
mod unmarked;
mod watchlist;
mod wishes;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::sync::mpsc;

use crate::edge::{Answer, Call, Cause, Reply, Routed};

use super::Shared;

pub(crate) use kept::Kept;

use ask::{Ask, Wants};
use exchange::{Exchange, Piece};
use kept::Keeping;
use line::Line;
use listen::Listening;
use stream::Told;

impl Shared {
    /// Carries a modern message to a worker of sessions.
    pub(super) async fn bridge(&self, routed: Routed) -> Result<Reply, Cause> {
        let Routed { head, principal, permit, call, upstream, .. } = routed;
        let Call::Message(message) = call else { return Err(Cause::NotBridged) };
        let Some(ask) = Ask::read(message, principal.reach())? else {
            // No notification of a modern client means anything to the session that many of them share.
            return Ok(reply(StatusCode::ACCEPTED, None, crate::edge::empty()));
        };
        let notes = Arc::clone(&head.notes);
        let (tell, mut told) = mpsc::channel(PIECES);
        let line = Line {
            pool: self.pools.of(&upstream, &self.limits, &self.drivers),
            principal,
            reference: head.reference,
            upstream,
            drivers: self.drivers.clone(),
        };
        let keeping = Keeping {
            kept: self.pools.1.clone(),
            limits: self.bridges.clone(),
            most_buffered: self.limits.most_buffered_bytes,
            leaves: self.leaves.clone(),
            stopping: self.stopping.clone(),
        };
        if ask.wants == Wants::Changes {
            permit.becomes_stream()?;
            let ends = self.ends(&line.principal, None);
            let (id, wishes, comment) = (ask.id.clone(), ask.wishes()?, self.limits.comment);
            let listening = Listening { line, keeping, id, wishes, tell, comment, ends };
            self.leaves.start(async move {
                listening.run().await;
                drop(permit);
            });
        } else {
            let exchange = Exchange::new((line, keeping), (ask, permit), tell, self.limits.comment);
            // It outlives the client by as much as it takes to tell the worker so.
            self.leaves.start(exchange.run());
        }
        let answer = match told.recv().await {
            Some(Piece::Whole(status, text)) => {
                reply(status, Some("application/json"), Full::new(text).map_err(|never| match never {}).boxed_unsync())
            }
            Some(Piece::Event(first)) => {
                let mut reply =
                    reply(StatusCode::OK, Some("text/event-stream"), Told::new(first, told, notes).boxed_unsync());
                let headers = reply.answer.headers_mut();
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
                headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
                reply
            }
            Some(Piece::Failed(cause, _) | Piece::Refused(cause)) => return Err(cause),
            Some(Piece::End) | None => return Err(Cause::Broken),
        };
        Ok(answer)
    }
}

fn reply(status: StatusCode, kind: Option<&'static str>, body: crate::edge::AnswerBody) -> Reply {
    let mut answer: Answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(kind) = kind {
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Reply { answer, opened: None }
}

/// Read from the worker before the client has taken them.
const PIECES: usize = 4;
