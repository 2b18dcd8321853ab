//! The way from a child to one who waits, bounded in messages and in bytes.
//!
//! Whoever does not read holds up what fits into the bounds and no more; after a while their call is ended, with the
//! reason, and the child's other words flow on.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What reaches the one who waits for an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A notification or a request that comes before the answer.
    Before(Vec<u8>),
    /// The answer; nothing follows.
    Answer(Vec<u8>),
}

/// Why no answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The child has ended.
    Died,
    /// The call took too long.
    Late,
    /// The client said that it does not want the answer any more.
    Cancelled,
    /// The client did not read what came before.
    Slow,
    /// The child's line was longer than may be.
    TooLong,
}

#[derive(Clone, Debug)]
pub(crate) struct Mouth {
    to: Sender<Held>,
    room: Arc<Semaphore>,
    most: usize,
    end: Arc<OnceLock<End>>,
}

#[derive(Debug)]
pub(crate) struct Ear {
    from: Receiver<Held>,
    end: Arc<OnceLock<End>>,
}

/// Why something was not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unheard {
    Gone,
    Slow,
}

#[derive(Debug)]
struct Held {
    said: Said,
    room: OwnedSemaphorePermit,
}

/// The two ends of a way that holds at most as many bytes, and [`MOST`] messages.
pub(crate) fn outlet(most: usize) -> (Mouth, Ear) {
    let most = most.min(Semaphore::MAX_PERMITS);
    let (to, from) = mpsc::channel(MOST);
    let end = Arc::new(OnceLock::new());
    (Mouth { to, room: Arc::new(Semaphore::new(most)), most, end: Arc::clone(&end) }, Ear { from, end })
}

impl Mouth {
    /// Waits for room, for as long as `patience`. Dropped while it waits, nothing was said.
    pub(crate) async fn say(&self, said: Said, patience: Duration) -> Result<(), Unheard> {
        let (Said::Before(line) | Said::Answer(line)) = &said;
        // A message of any length fits when nothing else is held.
        let bytes = u32::try_from(line.len().min(self.most)).unwrap_or(u32::MAX);
        let saying = async {
            let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_closed| Unheard::Gone)?;
            self.to.send(Held { said, room }).await.map_err(|_closed| Unheard::Gone)
        };
        tokio::time::timeout(patience, saying).await.unwrap_or(Err(Unheard::Slow))
    }

    /// Says an answer of ours, if there is room. It is short, so it is not counted.
    pub(crate) fn answer(&self, line: Vec<u8>) -> bool {
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(0) else { return false };
        self.to.try_send(Held { said: Said::Answer(line), room }).is_ok()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }

    /// Leaves word why nothing follows.
    pub(crate) fn end(self, why: End) {
        let _ = self.end.set(why);
    }
}

impl Ear {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Said, End>> {
        self.from.poll_recv(cx).map(|held| match held {
            Some(Held { said, room }) => {
                drop(room);
                Ok(said)
            }
            None => Err(self.end.get().copied().unwrap_or(End::Died)),
        })
    }
}

/// Messages that wait in one outlet.
const MOST: usize = 16;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::{End, MOST, Said, Unheard, outlet};

    fn said(bytes: usize) -> Said {
        Said::Before(vec![b'x'; bytes])
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_bytes_and_messages_are_held_as_may_and_not_one_more() {
        let patience = Duration::from_secs(1);
        let (mouth, _ear) = outlet(8);
        assert_eq!(mouth.say(said(8), patience).await, Ok(()));
        assert_eq!(mouth.say(said(1), patience).await, Err(Unheard::Slow));
        let (mouth, mut ear) = outlet(8);
        for _ in 0..MOST {
            assert_eq!(mouth.say(said(0), patience).await, Ok(()));
        }
        assert_eq!(mouth.say(said(0), patience).await, Err(Unheard::Slow));
        assert!(!mouth.answer(Vec::new()));
        assert_eq!(poll_fn(|cx| ear.poll(cx)).await, Ok(said(0)));
        assert!(mouth.answer(Vec::new()));
    }

    #[tokio::test]
    async fn a_message_that_is_longer_than_the_room_fits_alone() {
        let (mouth, mut ear) = outlet(8);
        assert_eq!(mouth.say(said(9), Duration::from_secs(1)).await, Ok(()));
        assert_eq!(poll_fn(|cx| ear.poll(cx)).await, Ok(said(9)));
    }

    #[tokio::test]
    async fn the_reason_follows_what_was_said() {
        let (mouth, mut ear) = outlet(8);
        mouth.say(said(1), Duration::from_secs(1)).await.unwrap();
        mouth.end(End::Late);
        assert_eq!(poll_fn(|cx| ear.poll(cx)).await, Ok(said(1)));
        assert_eq!(poll_fn(|cx| ear.poll(cx)).await, Err(End::Late));
        let (mouth, mut ear) = outlet(8);
        drop(mouth);
        assert_eq!(poll_fn(|cx| ear.poll(cx)).await, Err(End::Died));
    }

    #[tokio::test]
    async fn who_has_gone_hears_nothing() {
        let (mouth, ear) = outlet(8);
        drop(ear);
        assert_eq!(mouth.say(said(1), Duration::from_secs(1)).await, Err(Unheard::Gone));
    }
}
