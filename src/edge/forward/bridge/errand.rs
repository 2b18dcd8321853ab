//! What the edge asks a worker on its own account within a session.

use crate::edge::Cause;
use crate::edge::forward::answer::{self, Absent, Expects, Shape};
use crate::edge::forward::carried::Carried;

use super::line::Line;
use super::messages::Messages;
use super::session::{OPENING, Session};
use super::told;
use super::watchlist::Errand;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Done,
    /// The worker has answered with an error.
    Refused,
    /// The worker does not know the session.
    Forgotten,
}

/// Has the worker watch what is wished for, until nobody listens and nothing is watched.
pub(super) async fn run_all(session: &Session, line: &Line) {
    while let Some(errand) = session.feed.errand().await {
        if session.is_ended() {
            // What was watched ends with it.
            return session.feed.is_deserted().await;
        }
        let (method, uri) = match &errand {
            Errand::Watch(uri) => ("resources/subscribe", uri),
            Errand::Stop(uri) => ("resources/unsubscribe", uri),
        };
        let params = format!(r#""uri":{}"#, serde_json::json!(uri));
        let reply = ask(session, line, method, &params).await;
        if reply == Ok(Reply::Forgotten) {
            session.forget();
        }
        if let Errand::Watch(uri) = errand {
            session.feed.asked(uri, reply == Ok(Reply::Done));
        }
    }
}

/// Has the worker log what the running requests want to see, if it does not yet.
pub(super) async fn set_level(session: &Session, line: &Line) -> Reply {
    let Some(turn) = session.logs.turn().await else { return Reply::Done };
    let level = format!(r#""level":"{}""#, turn.level.name());
    // What is wrong with the worker is for the request itself to find out.
    let reply = ask(session, line, "logging/setLevel", &level).await.unwrap_or(Reply::Refused);
    if reply != Reply::Forgotten {
        turn.done();
    }
    reply
}

/// Sends a request of ours and waits for its answer, for no longer than a worker that is alive takes.
pub(super) async fn ask(session: &Session, line: &Line, method: &str, params: &str) -> Result<Reply, Cause> {
    let wait = line.upstream.terms.bounds.head.min(OPENING);
    let asked = tokio::time::timeout(wait, asked(session, line, method, params));
    asked.await.unwrap_or(Err(Cause::Timeout { after: wait }))
}

async fn asked(session: &Session, line: &Line, method: &str, params: &str) -> Result<Reply, Cause> {
    let number = session.number();
    let text = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{{params}}}}}"#);
    let (response, wire) = line.post(Some(&session.place), Carried::ours(text.into()), OPENING).await?.into_parts();
    let shape = match answer::judge(&response, Expects::Result, Absent::Session) {
        Err(Cause::UnknownSession) => return Ok(Reply::Forgotten),
        shape => shape?,
    };
    let status = response.status();
    let mut messages = Messages::new((response.into_body(), wire), shape == Shape::Events, MOST_BYTES);
    while let Some(message) = messages.next().await? {
        if status.is_client_error() && told::is_of_lost_session(&message) {
            return Ok(Reply::Forgotten);
        }
        if let Some(is_result) = told::is_result_of(&message, number) {
            messages.rest(&line.drivers);
            return Ok(if is_result { Reply::Done } else { Reply::Refused });
        }
        if let Some(told::Unasked::Request { id, method }) = told::unasked(&message) {
            session.refuse(line, &id, &method).await;
        }
    }
    if status.is_success() { Err(Cause::Broken) } else { Ok(Reply::Refused) }
}

/// Of one message. Nothing of length comes of what is asked here, and nobody's budget holds it.
const MOST_BYTES: usize = 64 * 1024;
