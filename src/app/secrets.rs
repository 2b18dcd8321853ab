//! The secrets a service makes or reads at its start.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::Secret;

use crate::edge;
use crate::state::StateDir;
use crate::worker::token_file::{self, TokenFault};

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{what} {}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("token file {}: {fault}", path.display())]
    Bearer { path: PathBuf, fault: TokenFault },
    #[error("the system has no randomness")]
    NoRandomness,
}

/// A bearer for one life of a service.
pub(super) fn fresh() -> Result<Secret, SecretError> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random()?)))
}

/// The bearer of a worker that runs on its own.
pub fn bearer(path: &Path) -> Result<Secret, SecretError> {
    token_file::read(path).map_err(|fault| SecretError::Bearer { path: path.to_owned(), fault })
}

/// The list of sessions that were ended, which outlives the service where it has a state.
pub(super) fn tombstones(
    state: Option<&StateDir>,
    limits: &edge::config::Sessions,
) -> Result<Option<OwnedFd>, SecretError> {
    let Some(state) = state else { return Ok(None) };
    let path = state.tombstones();
    compact(&path, limits)?;
    let tombstones =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path).map_err(at("open", &path))?;
    Ok(Some(tombstones.into()))
}

/// Makes the record of ended sessions small again. Nobody appends to it meanwhile: the state's lock is ours, and an edge
/// that outlives its service would hold it still.
fn compact(path: &Path, limits: &edge::config::Sessions) -> Result<(), SecretError> {
    let record = match File::open(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(at("open", path))?,
    };
    let kept = edge::compacted_tombstones(&mut BufReader::new(record), limits, kit::clock::since_epoch())
        .map_err(at("read", path))?;
    if let Err(fault) = kit::durable::replace(path, 0o600, &kept) {
        // The longer record says the same.
        tracing::warn!(path = %path.display(), %fault, "the record of ended sessions cannot be made smaller");
    }
    Ok(())
}

fn random() -> Result<[u8; KEY_BYTES], SecretError> {
    let mut bytes = [0; KEY_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_unspecified| SecretError::NoRandomness)?;
    Ok(bytes)
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SecretError {
    let path = path.to_owned();
    move |source| SecretError::Io { what, path, source }
}

const KEY_BYTES: usize = 32;
