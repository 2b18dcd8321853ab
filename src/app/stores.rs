//! Where a configuration has its records and stores, and what to make of others that may read them.

use std::path::{Path, PathBuf};

use super::BuildError;
use super::fault::io;
use crate::audit::Folder;
use crate::config::Config;
use crate::oauth::keeper::File;
use crate::state::StateDir;
use crate::store::Loose;

/// Where calls are recorded, where they are.
pub(super) fn record(config: &Config) -> Option<Folder> {
    let (audit, state) = config.audit.as_ref().zip(config.state.as_ref())?;
    Some(Folder { path: state.path().to_owned(), keep: audit.keep })
}

pub(super) fn loose(config: &Config) -> Loose {
    loose_at(config, &config.credentials, StateDir::credentials)
}

/// A store that an operator named may be the original's, which only warned; the state's own is ours alone.
pub(super) fn loose_at(config: &Config, path: &Path, own: impl Fn(&StateDir) -> PathBuf) -> Loose {
    let is_own = config.state.as_ref().is_some_and(|state| own(state) == path);
    if is_own { Loose::Refuse } else { Loose::Warn }
}

/// The OAuth state, there from now on: an edge asks again and again for a file that is not.
pub(super) fn oauth_file(config: &Config) -> Result<Option<File>, BuildError> {
    let Some(oauth) = &config.oauth else { return Ok(None) };
    let file = File::at(absolute(&oauth.state)?, loose_at(config, &oauth.state, StateDir::oauth));
    file.make()?;
    Ok(Some(file))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(path).map_err(io("find the working directory"))
}
