//! What a connection is doing, and for how long it may.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::edge::config::Connections;

/// The record that the stream and the exchanges of one connection keep, and its watchdog reads.
///
/// ```text
/// Head --(a request is whole)--> under way --(its answer is out)--> Rest --(a byte)--> Head
/// ```
pub(super) struct Activity(Mutex<State>);

struct State {
    under_way: usize,
    pause: Pause,
    multiplexed: bool,
    /// Since when the socket takes no bytes although there are some.
    blocked: Option<Instant>,
    /// Answers of which a piece was handed on and the next has not been asked for since: the client does not read.
    /// At most one an exchange.
    handed: HashMap<u64, Instant>,
    next: u64,
}

/// What a connection without an exchange is doing.
#[derive(Clone, Copy)]
enum Pause {
    /// A request head is due, from the start or since its first byte.
    Head(Instant),
    Rest(Instant),
}

pub(super) enum Verdict {
    /// All is well; look again then.
    Wait(Duration),
    End(&'static str),
}

/// An exchange under way, from its head to the last byte of its answer.
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    number: u64,
}

/// A stream that records when it moves.
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            under_way: 0,
            pause: Pause::Head(kit::clock::now()),
            multiplexed: false,
            blocked: None,
            handed: HashMap::new(),
            next: 0,
        }))
    }

    /// On HTTP/2 bytes come without a request (pings, windows), so they start no head's clock: until its first request
    /// the connection has the time of a head, and between requests that of a rest.
    pub(super) fn multiplexed(&self) {
        self.state().multiplexed = true;
    }

    pub(super) fn is_multiplexed(&self) -> bool {
        self.state().multiplexed
    }

    /// Whether nothing is under way, not even a head.
    pub(super) fn is_resting(&self) -> bool {
        let state = self.state();
        state.under_way == 0 && state.blocked.is_none() && matches!(state.pause, Pause::Rest(_))
    }

    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let mut state = self.state();
        state.under_way += 1;
        let number = state.next;
        state.next += 1;
        UnderWay { activity: Arc::clone(self), number }
    }

    pub(super) fn verdict(&self, now: Instant, limits: &Connections) -> Verdict {
        let state = self.state();
        let left = |since: Instant, limit: Duration| limit.saturating_sub(now.duration_since(since));
        let pause = match state.pause {
            _ if state.under_way > 0 => None,
            Pause::Head(since) => Some((left(since, limits.head), "a request head did not arrive in time")),
            Pause::Rest(since) => Some((left(since, limits.idle), "it was idle")),
        };
        let stalled = state.blocked.map(|since| (left(since, limits.write_stall), "the client does not read"));
        let handed = state.handed.values().copied().min();
        let piece = handed.map(|since| (left(since, limits.piece), "the client reads too slowly"));
        let due = [pause, stalled, piece].into_iter().flatten().min_by_key(|(left, _)| *left);
        // A clock that starts after this look runs out no earlier than after the shortest of them.
        let look = limits.head.min(limits.idle).min(limits.write_stall).min(limits.piece);
        match due {
            Some((left, reason)) if left.is_zero() => Verdict::End(reason),
            Some((left, _)) => Verdict::Wait(left.min(look)),
            None => Verdict::Wait(look),
        }
    }

    fn read(&self) {
        let mut state = self.state();
        if !state.multiplexed && matches!(state.pause, Pause::Rest(_)) && state.under_way == 0 {
            state.pause = Pause::Head(kit::clock::now());
        }
    }

    fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        let mut state = self.state();
        match outcome {
            Poll::Pending => {
                let now = kit::clock::now();
                state.blocked.get_or_insert(now);
            }
            Poll::Ready(_) => state.blocked = None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// A piece of the answer was handed to the connection.
    pub(super) fn handed(&self) {
        self.activity.state().handed.insert(self.number, kit::clock::now());
    }

    /// The connection has asked for the next piece.
    pub(super) fn asked(&self) {
        self.activity.state().handed.remove(&self.number);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.handed.remove(&self.number);
        state.under_way -= 1;
        if state.under_way == 0 {
            state.pause = Pause::Rest(kit::clock::now());
        }
    }
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.activity.read();
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.wrote(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.activity.wrote(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, Verdict};
    use crate::edge::config::Connections;
    use std::sync::Arc;
    use std::task::Poll;
    use std::time::Duration;

    fn check(activity: &Activity, later: Duration) -> Option<&'static str> {
        match activity.verdict(kit::clock::now() + later, &Connections::default()) {
            Verdict::Wait(_) => None,
            Verdict::End(reason) => Some(reason),
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_head_has_its_time_from_the_first_byte() {
        let activity = Arc::new(Activity::new());
        assert_eq!(check(&activity, seconds(9)), None);
        assert!(check(&activity, seconds(10)).is_some());
        drop(activity.begin());
        assert_eq!(check(&activity, seconds(74)), None, "a rest is longer");
        assert!(check(&activity, seconds(75)).is_some());
        activity.read();
        assert!(check(&activity, seconds(10)).is_some());
    }

    #[test]
    fn an_exchange_has_no_clock_here_unless_its_client_does_not_read() {
        let activity = Arc::new(Activity::new());
        let exchange = activity.begin();
        assert_eq!(check(&activity, seconds(10_000)), None);
        exchange.handed();
        assert_eq!(check(&activity, seconds(119)), None);
        assert!(check(&activity, seconds(120)).is_some());
        exchange.asked();
        assert_eq!(check(&activity, seconds(10_000)), None);
        activity.wrote(&Poll::Pending);
        activity.wrote(&Poll::Pending);
        assert_eq!(check(&activity, seconds(29)), None);
        assert!(check(&activity, seconds(30)).is_some());
        activity.wrote(&Poll::Ready(Ok(1)));
        assert_eq!(check(&activity, seconds(10_000)), None);
    }

    #[test]
    fn pings_start_no_clock_on_http2() {
        let activity = Arc::new(Activity::new());
        activity.multiplexed();
        drop(activity.begin());
        activity.read();
        assert_eq!(check(&activity, seconds(74)), None);
    }
}
