//! From which severity on a worker is to log within one session.
//!
//! The session is shared and has one such threshold, so it is the lowest of those that the running requests ask for; what
//! lies below a request's own is not passed on to its client. A request that asks for no log changes nothing, and neither
//! does the end of one: the worker is asked when the next request comes for which the threshold is another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::level::Level;

pub(super) struct Logs {
    state: Mutex<State>,
    /// The worker is asked one thing after the other, so that its threshold is what it was asked for last.
    turn: Semaphore,
}

#[derive(Default)]
struct State {
    /// How many running requests want each level.
    wanted: BTreeMap<Level, usize>,
    /// What the worker was last asked for.
    asked: Option<Level>,
}

/// A running request's wish; given up when dropped.
pub(super) struct Wanted<'a> {
    logs: &'a Logs,
    level: Level,
}

/// The right to ask the worker for another threshold.
pub(super) struct Turn<'a> {
    logs: &'a Logs,
    pub(super) level: Level,
    _alone: SemaphorePermit<'a>,
}

impl Logs {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), turn: Semaphore::new(1) }
    }

    pub(super) fn want(&self, level: Level) -> Wanted<'_> {
        *self.state().wanted.entry(level).or_default() += 1;
        Wanted { logs: self, level }
    }

    /// Waits until nobody else asks the worker; nothing if it has been asked for what is wanted by then.
    pub(super) async fn turn(&self) -> Option<Turn<'_>> {
        let alone = self.turn.acquire().await.ok()?;
        let level = self.due()?;
        Some(Turn { logs: self, level, _alone: alone })
    }

    fn due(&self) -> Option<Level> {
        let state = self.state();
        let lowest = state.wanted.keys().next().copied();
        lowest.filter(|lowest| state.asked != Some(*lowest))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// The worker has been asked. Whatever it said, it is not asked for the same again.
    pub(super) fn done(self) {
        self.logs.state().asked = Some(self.level);
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let mut state = self.logs.state();
        if let Some(count) = state.wanted.get_mut(&self.level) {
            *count -= 1;
            if *count == 0 {
                state.wanted.remove(&self.level);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Logs};

    fn level(name: &str) -> Level {
        Level::parse(name).expect("a level")
    }

    /// What the worker is asked for now, if anything.
    async fn asked(logs: &Logs) -> Option<&'static str> {
        let turn = logs.turn().await?;
        let name = turn.level.name();
        turn.done();
        Some(name)
    }

    #[tokio::test]
    async fn the_worker_is_asked_for_the_lowest_level_that_runs_and_once_for_each_change() {
        let logs = Logs::new();
        assert_eq!(asked(&logs).await, None);
        let error = logs.want(level("error"));
        assert_eq!((asked(&logs).await, asked(&logs).await), (Some("error"), None));
        let (debug, info) = (logs.want(level("debug")), logs.want(level("info")));
        assert_eq!((asked(&logs).await, asked(&logs).await), (Some("debug"), None));
        drop(error);
        assert_eq!(asked(&logs).await, None, "a lower one runs");
        let again = logs.want(level("debug"));
        drop(debug);
        assert_eq!(asked(&logs).await, None, "the same again runs");
        drop(again);
        assert_eq!(asked(&logs).await, Some("info"));
        drop(info);
        assert_eq!(asked(&logs).await, None, "nobody wants anything");
    }

    #[tokio::test]
    async fn who_leaves_while_the_worker_is_asked_leaves_the_question_to_the_next() {
        let logs = Logs::new();
        let _wanted = logs.want(level("alert"));
        drop(logs.turn().await);
        assert_eq!(asked(&logs).await, Some("alert"));
    }
}
