//! A state for the time of one look, beside where the one that is meant would be made: what is tried is then tried on that
//! file system, and nothing stays.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::state::StateDir;

/// It goes with this.
pub(super) struct Beside(PathBuf);

impl Beside {
    pub(super) fn of(meant: &StateDir) -> Result<Self, Failure> {
        let folder = meant.path().ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let name = format!(".playground-doctor-{}-{}", std::process::id(), kit::clock::since_epoch().as_nanos());
        let path = folder.join(name);
        // One that is there already is somebody else's, and would not be ours to remove.
        DirBuilder::new().mode(0o700).create(&path).map_err(|fault| {
            Failure::new(anyhow::Error::new(fault).context(format!("make {}", path.display())))
                .hint("name the state of the service with --state DIR, or a place where one can be made")
        })?;
        Ok(Self(path))
    }

    pub(super) fn state(&self) -> Result<StateDir, Failure> {
        StateDir::open(&self.0).map_err(Failure::from)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // What cannot be removed says by its name whose it was.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
