//! A bounded table of token buckets.
//!
//! A key that is pushed out must not gain by it: only buckets that have been full again for a while are dropped, the
//! table is never cleared, and when it is full of busy keys the strangers beyond it share one bucket.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

type Limiter = RateLimiter<NotKeyed, InMemoryState, KitClock, NoOpMiddleware<Instant>>;

/// One token bucket for each key, for at most so many keys.
pub(crate) struct Buckets<K> {
    table: Mutex<Table<K>>,
    quota: Quota,
    most: usize,
    /// After so long without use a bucket is full again, and forgetting it loses nothing.
    refilled: Duration,
}

struct Table<K> {
    buckets: HashMap<K, Bucket>,
    strangers: Limiter,
    swept: Instant,
}

struct Bucket {
    limiter: Limiter,
    used: Instant,
}

/// No token is left; one will be in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Empty {
    pub(crate) again: Duration,
}

#[derive(Clone, Copy, Default)]
struct KitClock;

impl<K: Eq + Hash> Buckets<K> {
    /// Buckets that hold `burst` tokens and regain one each `each`.
    pub(crate) fn new(each: Duration, burst: u32, most: usize) -> Self {
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let each = each.max(Duration::from_nanos(1));
        let quota = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(burst);
        let strangers = RateLimiter::direct_with_clock(quota, KitClock);
        let table = Table { buckets: HashMap::new(), strangers, swept: kit::clock::now() };
        Self { table: Mutex::new(table), quota, most, refilled: each.saturating_mul(burst.get()) }
    }

    /// Takes a token of `key`.
    pub(crate) fn take(&self, key: K) -> Result<(), Empty> {
        let now = kit::clock::now();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.buckets.len() >= self.most && now.duration_since(table.swept) >= SWEEP {
            let refilled = self.refilled;
            table.buckets.retain(|_, bucket| now.duration_since(bucket.used) < refilled);
            table.swept = now;
        }
        let full = table.buckets.len() >= self.most;
        let Table { buckets, strangers, .. } = &mut *table;
        let limiter = match buckets.entry(key) {
            Entry::Occupied(known) => {
                let bucket = known.into_mut();
                bucket.used = now;
                &bucket.limiter
            }
            Entry::Vacant(_) if full => strangers,
            Entry::Vacant(free) => {
                let limiter = RateLimiter::direct_with_clock(self.quota, KitClock);
                &free.insert(Bucket { limiter, used: now }).limiter
            }
        };
        limiter.check().map_err(|until| Empty { again: until.wait_time_from(now) })
    }

    /// Keys that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).buckets.len()
    }
}

impl Clock for KitClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        kit::clock::now()
    }
}

/// A sweep walks the table, so a flood of new keys must not cause one each.
const SWEEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::Buckets;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_bucket_gives_its_burst_and_then_says_when() {
        let buckets = Buckets::new(HOUR, 3, 10);
        for _ in 0..3 {
            assert_eq!(buckets.take("a"), Ok(()));
        }
        let empty = buckets.take("a").expect_err("the burst is used up");
        assert!(empty.again > Duration::ZERO && empty.again <= HOUR, "{empty:?}");
        assert_eq!(buckets.take("b"), Ok(()), "another key has its own");
    }

    #[test]
    fn a_flood_of_keys_neither_grows_the_table_nor_frees_who_is_over_the_limit() {
        let buckets = Buckets::new(HOUR, 1, 1000);
        assert_eq!(buckets.take(0), Ok(()));
        assert!(buckets.take(0).is_err());
        for key in 1..40_000 {
            let _ = buckets.take(key);
        }
        assert_eq!(buckets.len(), 1000);
        assert!(buckets.take(0).is_err(), "still limited");
        assert!(buckets.take(50_000).is_err(), "strangers share one bucket, which the flood emptied");
    }
}
