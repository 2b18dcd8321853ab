//! Where in a `playground.toml` a file is named, so that what is wrong with the file is told there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::manager::credential;

/// The line and the column of each path that a file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<PathBuf, (usize, usize)>);

impl Places {
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<(usize, usize)> {
        self.0.get(path).copied()
    }

    /// Of a path that is named twice the first place counts.
    pub(super) fn add(&mut self, path: PathBuf, place: (usize, usize)) {
        self.0.entry(path).or_insert(place);
    }

    /// Makes the paths those of a folder.
    pub(super) fn seat(&mut self, folder: &Path) {
        let seated = |(path, place): (PathBuf, _)| (credential::place(folder, &path), place);
        self.0 = std::mem::take(&mut self.0).into_iter().map(seated).collect();
    }
}
