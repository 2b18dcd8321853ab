//! The wish that what is done on a host goes no further.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// A wish to go no further; clones are the same one.
///
/// Once wished, it is one fault: of the program that runs, or of the next one. What a fault leads to is known at every
/// step, so that what was begun is taken back by the same ways. A program that is about to end is let end, for then it is
/// known what it did. Insisted on, it is a fault of every program from then on, also of those that take back.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<watch::Sender<Wish>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    None,
    Once,
    Always,
}

impl Halt {
    pub(crate) fn wish(&self) {
        self.0.send_replace(Wish::Once);
    }

    /// Wishes it for good.
    pub(crate) fn insist(&self) {
        self.0.send_replace(Wish::Always);
    }

    /// Takes back a wish that nobody took.
    pub(crate) fn forget(&self) {
        self.0.send_if_modified(|wish| {
            let is_open = *wish == Wish::Once;
            if is_open {
                *wish = Wish::None;
            }
            is_open
        });
    }

    /// Whether it is for the caller to go no further, who is the one then.
    pub(super) fn take(&self) -> bool {
        let mut is_wished = false;
        self.0.send_if_modified(|wish| {
            is_wished = *wish != Wish::None;
            let is_taken = *wish == Wish::Once;
            if is_taken {
                *wish = Wish::None;
            }
            is_taken
        });
        is_wished
    }

    /// Waits until it is for the caller, whose program had a moment to end by itself.
    pub(super) async fn taken(&self) {
        let mut wish = self.0.subscribe();
        loop {
            // Whoever could wish is this one itself, and is there.
            let _ = wish.wait_for(|wish| *wish != Wish::None).await;
            let _ = timeout(MOMENT, wish.wait_for(|wish| *wish == Wish::Always)).await;
            if self.take() {
                return;
            }
        }
    }
}

/// Most programs of a plan take less, and nothing has to be guessed of what they did.
const MOMENT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::Halt;

    #[test]
    fn a_wish_is_taken_once_and_an_urgent_one_by_everybody() {
        let halt = Halt::default();
        assert!(!halt.take());
        halt.wish();
        assert_eq!([halt.take(), halt.take()], [true, false]);
        halt.wish();
        halt.forget();
        assert!(!halt.take());
        halt.wish();
        halt.clone().insist();
        halt.forget();
        assert_eq!([halt.take(), halt.take()], [true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_that_wait_one_takes_it() {
        let halt = Halt::default();
        halt.wish();
        halt.taken().await;
        let waiting = halt.clone();
        tokio::select! {
            biased;
            () = waiting.taken() => panic!("nobody wishes it"),
            () = tokio::task::yield_now() => {}
        }
        halt.insist();
        tokio::join!(halt.taken(), waiting.taken());
    }
}
