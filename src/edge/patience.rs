//! When a refusal is told.
//!
//! A refusal is work too, and who is refused can ask again at once. As many as a key may have are told at once; those
//! beyond them are held back, so that a connection of a flood costs a few refusals a second and not thousands, which
//! others would feel, and each for another while, so that they do not come back all at once.

use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::buckets::Buckets;

/// Tells refusals at once, while they are few.
pub(crate) struct Patience<K> {
    at_once: Buckets<K>,
    /// How many were held back.
    held_back: AtomicU32,
    /// Those that wait now hold a connection each, of which there must be some for others.
    places: Semaphore,
}

impl<K: Eq + Hash> Patience<K> {
    /// Tells those at once that `at_once` has a token for, and holds back at most `places` at a time.
    pub(crate) fn new(at_once: Buckets<K>, places: usize) -> Self {
        Self { at_once, held_back: AtomicU32::new(0), places: Semaphore::new(places) }
    }

    /// Resolves when a refusal may be told. Whoever was refused is to be dropped before; dropped here, the client has
    /// gone and nobody is to be told.
    pub(crate) async fn wait(&self, key: K) {
        if self.at_once.take(key).is_ok() {
            return;
        }
        if let Ok(_place) = self.places.try_acquire() {
            sleep(while_of(self.held_back.fetch_add(1, Ordering::Relaxed))).await;
        }
    }
}

/// For how long the refusal of this number is held back: 125 to 375 ms, spread evenly over any few in a row. Below the
/// least that `Retry-After` says, which is in whole seconds: who waits as told never meets it.
fn while_of(number: u32) -> Duration {
    // The golden ratio of a full turn.
    let turn = f64::from(number.wrapping_mul(0x9e37_79b9)) / f64::from(u32::MAX);
    Duration::from_millis(125) + Duration::from_millis(250).mul_f64(turn)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::{Patience, while_of};
    use crate::buckets::Buckets;

    /// Whether a refusal is told in no time at all.
    async fn at_once(patience: &Patience<u8>, key: u8) -> bool {
        timeout(Duration::ZERO, patience.wait(key)).await.is_ok()
    }

    #[tokio::test]
    async fn refusals_beyond_those_told_at_once_wait_and_are_told() {
        let patience = Patience::new(Buckets::new(Duration::from_secs(3600), 2, 16), 16);
        assert!(at_once(&patience, 1).await && at_once(&patience, 1).await);
        assert!(!at_once(&patience, 1).await);
        assert!(at_once(&patience, 2).await, "another key has its own");
        patience.wait(1).await;
    }

    #[tokio::test]
    async fn no_more_wait_than_there_are_places() {
        let patience = Patience::new(Buckets::new(Duration::from_secs(3600), 1, 16), 1);
        assert!(at_once(&patience, 1).await);
        let mut waiting = std::pin::pin!(patience.wait(1));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        assert!(at_once(&patience, 1).await, "there is no place left");
        waiting.await;
        assert!(!at_once(&patience, 1).await, "there is one again");
    }

    #[test]
    fn each_is_held_back_for_another_while() {
        let mut whiles: Vec<_> = (0..64).map(while_of).collect();
        whiles.sort_unstable();
        assert!(whiles[0] >= Duration::from_millis(125) && whiles[63] <= Duration::from_millis(375), "{whiles:?}");
        assert!(whiles.windows(2).all(|pair| pair[1] - pair[0] < Duration::from_millis(12)), "no gap: {whiles:?}");
        assert!(whiles.windows(2).all(|pair| pair[1] > pair[0]), "and no two at once: {whiles:?}");
    }
}
