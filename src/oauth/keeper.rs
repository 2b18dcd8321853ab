//! How the state is read and changed by a process that serves.
//!
//! The edge opens no file: it is handed what it reads, and asks the supervisor for each change. [`Direct`] does both
//! itself, for one process that owns the file.

mod direct;
mod file;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::{Change, Denied, Outcome, View};

pub use direct::Direct;
pub use file::File;

/// Whoever keeps the state.
pub trait Keeper: Send + Sync + 'static {
    /// What stands in the state now: a change that is in place before the question is always seen.
    fn view(&self) -> Pin<Box<dyn Future<Output = Arc<View>> + Send + '_>>;

    /// Does one step; when this returns, it is on the disk, and every later [`Keeper::view`] shows it.
    fn change(&self, change: Change) -> Pin<Box<dyn Future<Output = Result<Outcome, Unkept>> + Send + '_>>;
}

/// A step was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unkept {
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It was not begun.
    #[error("{most} changes of the OAuth state are under way")]
    Busy { most: usize },
    /// Nobody knows whether it was done.
    #[error("no answer to a change of the OAuth state came within {seconds} s")]
    Late { seconds: u64 },
    /// It was not done, or perhaps is not on the disk yet; why is in the log of whoever writes the file.
    #[error("the OAuth state cannot be changed now")]
    Fault,
}

/// One for tests that have nothing to keep.
#[cfg(test)]
pub(crate) struct Forgetful;

#[cfg(test)]
impl Keeper for Forgetful {
    fn view(&self) -> Pin<Box<dyn Future<Output = Arc<View>> + Send + '_>> {
        Box::pin(async { Arc::new(View::from(super::state::State::default())) })
    }

    fn change(&self, _change: Change) -> Pin<Box<dyn Future<Output = Result<Outcome, Unkept>> + Send + '_>> {
        Box::pin(async { Err(Unkept::Busy { most: 0 }) })
    }
}
