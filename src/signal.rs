//! The signals that ask this process to stop.

use std::io;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM or SIGINT, as they come.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    told: Option<Instant>,
    number: Option<i32>,
}

impl StopSignals {
    /// Takes both signals from the system's default, which would end the process at once.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            told: None,
            number: None,
        })
    }

    /// Waits for the next one. Dropping the future loses nothing.
    ///
    /// Signals that come together are one: who stops a process often signals its whole group as well.
    pub async fn next(&mut self) {
        loop {
            let came = tokio::select! {
                _ = self.terminate.recv() => SignalKind::terminate(),
                _ = self.interrupt.recv() => SignalKind::interrupt(),
            };
            let now = kit::clock::now();
            let again = self.told.is_some_and(|told| now.saturating_duration_since(told) < TOGETHER);
            if !again {
                self.told = Some(now);
                self.number.get_or_insert(came.as_raw_value());
                return;
            }
        }
    }

    /// The number of the first one that was waited for.
    #[must_use]
    pub fn first(&self) -> Option<i32> {
        self.number
    }
}

/// Shorter than a person needs to ask twice.
const TOGETHER: Duration = Duration::from_millis(250);
