//! The one place that reads the clock.
//!
//! Pure code takes `now`; what runs asks here, so that the lint can forbid every other reader.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time, for deadlines and idle clocks.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the room that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Wall time since the Unix epoch, for what outlives the process: expiries in stores and sealed ids.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the room that reads the clock")]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
