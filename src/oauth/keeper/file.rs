//! The state's file, for who may write it. All of this blocks.

use std::path::{Path, PathBuf};

use crate::oauth::state::{Change, Denied, Order, Ordered, Outcome, Refused, State};
use crate::store::{ChangeError, Loose, Warning, Writer};

/// Where the state stands.
#[derive(Clone, Debug)]
pub struct File(Writer<State>);

impl File {
    #[must_use]
    pub fn at(path: impl Into<PathBuf>, loose: Loose) -> Self {
        Self(Writer::at(path, loose))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes the file where there is none.
    ///
    /// # Errors
    /// When there is one that cannot be used, or none can be made.
    pub fn make(&self) -> Result<(), ChangeError> {
        if self.0.path().try_exists().unwrap_or(true) {
            return self.read().map(drop);
        }
        // Another may have come first; then its own is written once more.
        self.0.change(|_| Ok(()))
    }

    /// Does one step that the edge asks for; when this returns, it is on the disk.
    ///
    /// # Errors
    /// When the file cannot be read, locked or replaced; then it is as it was, except after [`ChangeError::Unsure`].
    pub fn apply(&self, change: Change) -> Result<Result<Outcome, Denied>, ChangeError> {
        self.step(|state| state.apply(change, kit::clock::since_epoch()))
    }

    /// Does what an operator asks for; when this returns, it is on the disk.
    ///
    /// # Errors
    /// As [`File::apply`].
    pub fn order(&self, order: Order) -> Result<Result<Ordered, Refused>, ChangeError> {
        self.step(|state| state.order(order, kit::clock::since_epoch()))
    }

    /// The state, with what an operator should know about its file.
    ///
    /// # Errors
    /// When the file cannot be read. One that is not there is empty.
    pub fn read(&self) -> Result<(State, Vec<Warning>), ChangeError> {
        let found = self.0.read()?;
        let warnings = found.warnings();
        Ok((found.document, warnings))
    }

    /// A step that changes nothing writes nothing: whoever guesses costs no disk.
    fn step<T>(&self, step: impl FnOnce(&mut State) -> T) -> Result<T, ChangeError> {
        let done = self.0.change(|found| {
            let before = found.document.clone();
            let done = step(&mut found.document);
            if found.document == before { Err(Same::Done(done)) } else { Ok(done) }
        });
        match done {
            Ok(done) | Err(Same::Done(done)) => Ok(done),
            Err(Same::Fault(fault)) => Err(fault),
        }
    }
}

enum Same<T> {
    Done(T),
    Fault(ChangeError),
}

impl<T> From<ChangeError> for Same<T> {
    fn from(fault: ChangeError) -> Self {
        Self::Fault(fault)
    }
}
