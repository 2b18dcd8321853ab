//! The sources of the faculties, as the builder sees them.
//!
//! It sees the folder above the source, so that path dependencies on siblings can be built; what lies further out is not
//! there for it. Of all it sees, that counts which a build can read: the package with everything in it, each package that
//! it names by a path, and theirs, the manifests and settings of the folders between, and what links lead to. What a
//! build makes (`target`, and every folder with a `CACHEDIR.TAG`) and what version control keeps does not count.

mod walk;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub(super) use self::walk::Entry;

/// A folder with a package, below the folder that the builder sees.
#[derive(Clone, Debug)]
pub struct Source {
    folder: PathBuf,
    root: PathBuf,
    name: String,
    bounds: Bounds,
}

/// What a build is not made of, so that a wrong folder is told and not read for an hour.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub files: usize,
    pub bytes: u64,
}

/// Why the sources of the faculties cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{what} {}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is no folder with a package and a folder above it", .0.display())]
    NotPackage(PathBuf),
    #[error("the name of {} is no text, which the builder needs it to be", .0.display())]
    Name(PathBuf),
    #[error("there is no Cargo.lock for {}, which says what exactly is built; `cargo generate-lockfile` makes it", .0.display())]
    Unlocked(PathBuf),
    #[error("read {}", path.display())]
    Manifest {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{} names {}, which lies outside {}: the builder sees nothing else, so move it there", manifest.display(), path.display(), root.display())]
    Outside { manifest: PathBuf, path: PathBuf, root: PathBuf },
    #[error("{} is neither a file, a folder nor a link; a build cannot read it, so remove it", .0.display())]
    Strange(PathBuf),
    #[error("{} has more than {} files or {} bytes with all that it needs: is it the right folder?", folder.display(), bounds.files, bounds.bytes)]
    TooMuch { folder: PathBuf, bounds: Bounds },
}

impl Source {
    /// Finds the package in a folder.
    ///
    /// # Errors
    /// When there is none that could be built. Blocks.
    pub fn open(folder: &Path) -> Result<Self, SourceError> {
        let io =
            |source| SourceError::Io { what: "find the sources of the faculties", path: folder.to_owned(), source };
        let folder = folder.canonicalize().map_err(io)?;
        let not_package = || SourceError::NotPackage(folder.clone());
        if !folder.join(MANIFEST).is_file() {
            return Err(not_package());
        }
        let (root, name) = folder.parent().zip(folder.file_name()).ok_or_else(not_package)?;
        let name = name.to_str().ok_or_else(|| SourceError::Name(folder.clone()))?.to_owned();
        if root.to_str().is_none() {
            return Err(SourceError::Name(root.to_owned()));
        }
        if ![&folder, root].iter().any(|place| place.join("Cargo.lock").is_file()) {
            return Err(SourceError::Unlocked(folder));
        }
        Ok(Self { root: root.to_owned(), name, folder, bounds: BOUNDS })
    }

    /// The folder that the builder sees.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the package's folder is called in it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text that says what exactly is built.
    pub(super) fn lock(&self) -> String {
        let places = [&self.folder, &self.root];
        let found = places.iter().find_map(|place| std::fs::read_to_string(place.join("Cargo.lock")).ok());
        found.unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn within(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Everything that counts, by its path below the root. Blocks.
    pub(super) fn read(&self) -> Result<BTreeMap<Vec<u8>, Entry>, SourceError> {
        walk::read(self)
    }
}

/// The faculties with all that they need have some hundreds of files.
const BOUNDS: Bounds = Bounds { files: 200_000, bytes: 4 << 30 };

const MANIFEST: &str = "Cargo.toml";
