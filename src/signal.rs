//! The signals that ask this process to stop, or to read again what it was started with.

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

/// SIGHUP, as it comes.
#[derive(Debug)]
pub struct Hangups {
    signal: Signal,
    had_terminal: bool,
}

/// What a SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// Somebody sent it.
    Asked,
    /// The terminal that this process was started in is gone.
    TerminalGone,
}

impl Hangups {
    /// Takes the signal from the system's default, which would end the process at once.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signal: signal(SignalKind::hangup())?, had_terminal: has_terminal() })
    }

    /// Waits for the next one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Hangup {
        self.signal.recv().await;
        if self.had_terminal && !has_terminal() { Hangup::TerminalGone } else { Hangup::Asked }
    }
}

/// The kernel takes the terminal from every process of its session before it tells them.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Shorter than a person needs to ask twice.
const TOGETHER: Duration = Duration::from_millis(250);
