//! How long a worker may be silent within its answer.

use std::future::Future;
use std::task::{Context, Poll};

use super::{Events, Relay};

/// What becomes due while a worker says nothing.
pub(super) enum Silence {
    Comment,
    Over,
    Late,
}

impl Relay {
    /// The worker is silent: until when may it be?
    pub(super) fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Silence> {
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
}
