//! The writing side.
//!
//! Every change takes the lock, reads the file again, changes it and replaces it whole, so parallel writers lose
//! nothing. All of it blocks; a caller on a runtime goes through `spawn_blocking`.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::Document;
use super::fault::ChangeError;
use super::place::{Owner, Place, Step};
use super::reading::{self, Loose, ReadError, Reading, Warning};

/// A file that a document is written to.
pub struct Writer<D> {
    path: PathBuf,
    loose: Loose,
    document: PhantomData<fn() -> D>,
}

/// What stood in the file.
pub(crate) struct Found<D> {
    pub(crate) document: D,
    pub(crate) loose: Option<Warning>,
    owner: Option<Owner>,
}

impl<D: Document> Writer<D> {
    #[must_use]
    pub fn at(path: impl Into<PathBuf>, loose: Loose) -> Self {
        Self { path: path.into(), loose, document: PhantomData }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the document by what `apply` makes of it; when this returns, it is on the disk.
    ///
    /// # Errors
    /// As `apply` says, or when the file cannot be read, locked or replaced; then it is as it was, except after
    /// [`ChangeError::Unsure`].
    pub(crate) fn change<T, E: From<ChangeError>>(
        &self,
        apply: impl FnOnce(&mut Found<D>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.change_watched(&mut |_| Ok(()), apply)
    }

    /// As [`Writer::change`]; `before` is told each step and can break it off.
    pub(crate) fn change_watched<T, E: From<ChangeError>>(
        &self,
        before: &mut dyn FnMut(Step) -> io::Result<()>,
        apply: impl FnOnce(&mut Found<D>) -> Result<T, E>,
    ) -> Result<T, E> {
        let place = Place::lock(&self.path)?;
        let mut found = self.read_at(place.path())?;
        let done = apply(&mut found)?;
        let text = found.document.render().map_err(|source| ChangeError::Unwritable {
            called: D::CALLED,
            path: self.path.clone(),
            source,
        })?;
        place.replace(&text, found.owner, before)?;
        Ok(done)
    }

    /// # Errors
    /// When the file cannot be read. One that is not there is empty.
    pub(crate) fn read(&self) -> Result<Found<D>, ChangeError> {
        self.read_at(&self.path)
    }

    fn read_at(&self, path: &Path) -> Result<Found<D>, ChangeError> {
        let fault = |source| ChangeError::Unreadable { called: D::CALLED, path: self.path.clone(), source };
        match reading::open(path).map_err(|source| fault(ReadError::Open(source)))? {
            None => Ok(Found { document: D::empty(), loose: None, owner: None }),
            Some(file) => {
                let Reading { document, loose, owner, .. } = reading::read(&file, self.loose).map_err(fault)?;
                Ok(Found { document, loose, owner: Some(owner) })
            }
        }
    }
}

impl<D: Document> Found<D> {
    /// What an operator should know about the file.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        self.loose.iter().cloned().chain(self.document.warning()).collect()
    }
}

impl<D> Clone for Writer<D> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), loose: self.loose, document: PhantomData }
    }
}

impl<D> fmt::Debug for Writer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("loose", &self.loose).finish_non_exhaustive()
    }
}
