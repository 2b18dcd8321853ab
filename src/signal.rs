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
        })
    }

    /// Waits for the next one. Dropping the future loses nothing.
    ///
    /// Signals that come together are one: who stops a process often signals its whole group as well.
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
            let now = kit::clock::now();
            let again = self.told.is_some_and(|told| now.saturating_duration_since(told) < TOGETHER);
            if !again {
                self.told = Some(now);
                return;
            }
        }
    }
}

/// Shorter than a person needs to ask twice.
const TOGETHER: Duration = Duration::from_millis(250);
