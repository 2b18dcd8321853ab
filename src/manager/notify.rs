//! What a service manager is told, by the datagrams of sd_notify(3).
//!
//! A datagram waits while the manager's queue is full, and that is meant: one that is dropped would be taken for silence, for
//! which the manager kills a service that is well. The queue (`net.unix.max_dgram_qlen`) has room for hundreds and is
//! emptied by the first process of the system, so that whoever waits there has nobody left to serve either.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells the manager of this process how it is. Where none asked to be told, nothing happens.
#[derive(Clone, Debug)]
pub struct Notify {
    asked: bool,
    watchdog: Option<Duration>,
}

impl Notify {
    /// For what runs without a manager.
    #[must_use]
    pub fn none() -> Self {
        Self { asked: false, watchdog: None }
    }

    /// As the manager that started this process asked.
    #[must_use]
    pub fn as_asked() -> Self {
        let asked = std::env::var_os("NOTIFY_SOCKET").is_some();
        Self { asked, watchdog: sd_notify::watchdog_enabled().filter(|_| asked) }
    }

    /// How often it wants to hear that this process is alive; several times within what makes it impatient.
    #[must_use]
    pub fn pulse(&self) -> Option<Duration> {
        self.watchdog.map(|patience| patience / 3)
    }

    /// Everything is bound, and the next call will be answered; also after a reload.
    pub fn ready(&self, status: &str) {
        self.say(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    pub fn reloading(&self) {
        let status = NotifyState::Status("reading the configuration again");
        // Managers that ask for the reload themselves tell by the time which one is meant.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.say(&[NotifyState::Reloading, now, status]),
            Err(_no_clock) => self.say(&[NotifyState::Reloading, status]),
        }
    }

    pub fn status(&self, status: &str) {
        self.say(&[NotifyState::Status(status)]);
    }

    /// It is not ready yet, and goes on: from now the manager waits for another while, however long it has waited.
    pub fn goes_on(&self, status: &str) {
        self.say(&[NotifyState::ExtendTimeoutUsec(usec(WHILE)), NotifyState::Status(status)]);
    }

    /// Does something that may take longer than the manager waits for a start, and has a bound of its own. The manager
    /// hears all the while that this process lives, in words that may change meanwhile.
    pub async fn during<T>(&self, status: impl Fn() -> String, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        let mut ticks = tokio::time::interval(WHILE / 6);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = ticks.tick() => self.goes_on(&status()),
            }
        }
    }

    /// It ends, which takes no longer than `most`.
    pub fn stopping(&self, status: &str, most: Duration) {
        let most = NotifyState::ExtendTimeoutUsec(usec(most));
        self.say(&[NotifyState::Stopping, most, NotifyState::Status(status)]);
    }

    pub fn alive(&self) {
        self.say(&[NotifyState::Watchdog]);
    }

    fn say(&self, words: &[NotifyState<'_>]) {
        if !self.asked {
            return;
        }
        if let Err(fault) = sd_notify::notify(words) {
            tracing::debug!(%fault, "the service manager cannot be told");
        }
    }
}

fn usec(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// For how long one word that something goes on is good.
const WHILE: Duration = Duration::from_secs(30);
