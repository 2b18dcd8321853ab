//! One `subscriptions/listen`, from its arrival to its end.
//!
//! The worker's stream is the session's and serves all who listen; this is one of them. Its end is told where the
//! client did not bring it about: when the worker has forgotten the session, when its stream cannot be had any more, when a
//! reload takes the worker away, when the credential is revoked, and when the edge stops.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::edge::forward::farewell::completed;
use crate::edge::{Cause, RequestId};

use super::exchange::{FORGETFUL, Piece, SENDS};
use super::feed::{Heard, Seat, Standing};
use super::kept::Keeping;
use super::line::Line;
use super::session::OPENING;
use super::source;
use super::stream::{COMMENT, event};
use super::wishes::Wishes;

pub(super) struct Listening {
    pub(super) line: Line,
    pub(super) keeping: Keeping,
    pub(super) id: RequestId,
    pub(super) wishes: Wishes,
    pub(super) tell: mpsc::Sender<Piece>,
    /// Between two signs of life.
    pub(super) comment: Duration,
    /// When the edge stops, or the client may not listen any more.
    pub(super) ends: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Why it does not go on.
enum Stop {
    /// The client has gone.
    Gone,
    /// There is nothing more to be told.
    Over,
    Fault(Cause),
}

impl Listening {
    pub(super) async fn run(mut self) {
        let last = match self.listen().await {
            Stop::Gone => return,
            Stop::Over => {
                // A client that takes nothing any more does not hold up the end.
                let told = timeout(FAREWELL, self.tell.send(Piece::Event(completed(&self.id)))).await;
                if told.is_err() {
                    return;
                }
                Piece::End
            }
            Stop::Fault(cause) => Piece::Refused(cause),
        };
        let _ = timeout(FAREWELL, self.tell.send(last)).await;
    }

    async fn listen(&mut self) -> Stop {
        match self.seated().await {
            Ok(Some(seat)) => match self.pass(&seat).await {
                Ok(never) => match never {},
                Err(stop) => stop,
            },
            Ok(None) => Stop::Over,
            Err(stop) => stop,
        }
    }

    /// A place among the listeners, acknowledged; none where there is nothing to listen to.
    async fn seated(&mut self) -> Result<Option<Seat>, Stop> {
        for _ in 0..SENDS {
            let used = self.keeping.session(&self.line).await.map_err(Stop::Fault)?;
            let wishes = self.wishes.within(&used.about.capabilities);
            // A worker without session ids cannot know whom to tell.
            if wishes.is_empty() || used.place.upstream.is_none() {
                self.say(event(Wishes::default().acknowledged(&self.id).as_bytes())).await?;
                return Ok(None);
            }
            let (seat, begins) = Seat::take(used, wishes);
            if begins {
                let (session, line) = (std::sync::Arc::clone(&seat), self.line.clone());
                let limits = (self.keeping.limits.again, self.keeping.most_buffered);
                self.line.drivers.start(async move { source::tend(&session, &line, limits).await });
            }
            let standing = self.wanted(timeout(OPENING, seat.standing())).await?;
            match standing.map_err(|_late| Stop::Fault(Cause::Timeout { after: OPENING }))? {
                Some(Standing::Open) => {}
                Some(Standing::Absent) => {
                    self.say(event(Wishes::default().acknowledged(&self.id).as_bytes())).await?;
                    return Ok(None);
                }
                Some(Standing::Lost(cause)) => return Err(Stop::Fault(cause)),
                Some(Standing::Opening) | None => continue,
            }
            // What the worker has not agreed to by then it is not asked for any more.
            let _ = self.wanted(timeout(OPENING, seat.answered())).await?;
            if seat.is_ended() {
                continue;
            }
            let settled = seat.settle();
            self.say(event(settled.acknowledged(&self.id).as_bytes())).await?;
            return Ok((!settled.is_empty()).then_some(seat));
        }
        Err(Stop::Fault(FORGETFUL))
    }

    /// Tells the client of changes for as long as there may be any.
    async fn pass(&mut self, seat: &Seat) -> Result<std::convert::Infallible, Stop> {
        loop {
            let comment = self.comment;
            match self.wanted(timeout(comment, seat.next())).await? {
                Ok(Heard::Change(change)) => self.say(event(change.told(&self.id).as_bytes())).await?,
                Ok(Heard::Over) => return Err(Stop::Over),
                Err(_quiet) => self.say(Bytes::from_static(COMMENT)).await?,
            }
        }
    }

    async fn say(&mut self, event: Bytes) -> Result<(), Stop> {
        let tell = self.tell.clone();
        self.wanted(tell.send(Piece::Event(event))).await?.map_err(|_unread| Stop::Gone)
    }

    /// Waits as long as the client is there and may listen.
    async fn wanted<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.tell.closed() => Err(Stop::Gone),
            () = &mut self.ends => Err(Stop::Over),
            done = wait => Ok(done),
        }
    }
}

/// For a client that reads, the end is told at once.
const FAREWELL: Duration = Duration::from_secs(1);
