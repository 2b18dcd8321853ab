//! The stream on which a worker tells a session what no request has asked for.
//!
//! It is there while anyone listens. A worker may end it at any time, and is asked to go on from where it was, less and
//! less often while nothing comes of that. What the worker asks of its client there is refused to it.

use std::time::Duration;

use http::StatusCode;

use crate::edge::Cause;
use crate::edge::forward::answer::{self, Absent, Expects, Shape};

use super::errand::{self, Reply};
use super::feed::{Feed, Standing};
use super::line::Line;
use super::messages::Messages;
use super::session::Session;
use super::told::{self, Unasked};

/// Looks after the stream, and after what the worker is to watch, for as long as anyone listens.
pub(super) async fn tend(session: &Session, line: &Line, limits: (Duration, usize)) {
    loop {
        tokio::join!(read(session, line, limits), errand::run_all(session, line));
        if session.feed.leave_untended() {
            return;
        }
    }
}

/// How one try to have the stream went.
enum Went {
    /// It was there; something came of it or not.
    Ended {
        is_barren: bool,
    },
    /// The worker has no such stream.
    Absent,
    /// The worker does not know the session.
    Forgotten,
    Failed(Cause),
}

/// What is known between two tries.
struct Source<'a> {
    session: &'a Session,
    line: &'a Line,
    most: usize,
    /// The event to go on from.
    last: Option<String>,
    /// What the worker wants to be given between two tries.
    retry: Option<Duration>,
}

async fn read(session: &Session, line: &Line, (first, most): (Duration, usize)) {
    let feed: &Feed = &session.feed;
    let mut source = Source { session, line, most, last: None, retry: None };
    let (mut failures, mut pause) = (0, first);
    loop {
        let went = tokio::select! {
            () = feed.is_deserted() => return,
            went = source.once() => went,
        };
        match went {
            Went::Ended { is_barren } => {
                failures = 0;
                if is_barren {
                    // The place to go on from may be what it could do nothing with.
                    source.last = None;
                    pause = pause.saturating_mul(2);
                } else {
                    pause = first;
                }
            }
            Went::Failed(cause) => {
                failures += 1;
                source.last = None;
                pause = pause.saturating_mul(2);
                if failures == MOST_FAILURES {
                    tracing::warn!(
                        worker = line.upstream.label(),
                        ?cause,
                        "the worker's stream cannot be had; who listens hears of the end"
                    );
                    feed.stands(Standing::Lost(cause));
                    break;
                }
            }
            Went::Absent => {
                feed.stands(Standing::Absent);
                break;
            }
            Went::Forgotten => {
                session.forget();
                break;
            }
        }
        pause = pause.min(LONGEST_PAUSE);
        let asked = source.retry.unwrap_or_default().min(LONGEST_PAUSE);
        tokio::select! {
            () = feed.is_deserted() => return,
            () = tokio::time::sleep(pause.max(asked)) => {}
        }
    }
    feed.is_deserted().await;
}

impl Source<'_> {
    async fn once(&mut self) -> Went {
        let opened = match self.line.stream(&self.session.place, self.last.as_deref()).await {
            Ok(answered) => answered,
            Err(cause) => return Went::Failed(cause),
        };
        let (response, wire) = opened.into_parts();
        let status = response.status();
        match answer::judge(&response, Expects::Stream, Absent::Session) {
            Ok(Shape::Events) if status.is_success() => {}
            Err(Cause::MethodNotAllowed { .. }) => return Went::Absent,
            // A session that is not known and a stream that is not there look alike.
            Err(Cause::UnknownSession) => return self.doubt(Went::Absent).await,
            _ if status == StatusCode::BAD_REQUEST => {
                return self.doubt(Went::Failed(Cause::WorkerError(status))).await;
            }
            Ok(_) => return Went::Failed(Cause::WorkerAnswerUnusable("it is no event stream")),
            Err(cause) => return Went::Failed(cause),
        }
        self.session.feed.stands(Standing::Open);
        let mut messages = Messages::new((response.into_body(), wire), true, self.most);
        let mut is_barren = true;
        // However it ends, it is asked for again.
        while let Ok(Some(message)) = messages.next().await {
            is_barren = false;
            self.hear(&message).await;
        }
        let (last, retry) = messages.mark();
        is_barren &= last.is_none();
        self.last = last.or(self.last.take());
        self.retry = retry;
        Went::Ended { is_barren }
    }

    async fn hear(&self, message: &[u8]) {
        match told::unasked(message) {
            Some(Unasked::Change(change)) => self.session.feed.tell(&change),
            Some(Unasked::Request { id, method }) => self.session.refuse(self.line, &id, &method).await,
            None => {}
        }
    }

    /// Finds out by another question whether the worker knows the session.
    async fn doubt(&self, otherwise: Went) -> Went {
        match errand::ask(self.session, self.line, "ping", "").await {
            Ok(Reply::Forgotten) => Went::Forgotten,
            Ok(Reply::Done | Reply::Refused) => otherwise,
            Err(cause) => Went::Failed(cause),
        }
    }
}

/// One after the other; then a worker that listeners rely on is not there for them.
const MOST_FAILURES: u32 = 5;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);
