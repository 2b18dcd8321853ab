//! The secrets a service makes or reads at its start.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::Secret;

use crate::worker::token_file::{self, TokenFault};

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("token file {}: {fault}", path.display())]
    Bearer { path: PathBuf, fault: TokenFault },
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system has no randomness")]
pub struct NoRandomness;

/// A bearer that nobody has had before.
pub fn fresh() -> Result<Secret, SecretError> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random()?)))
}

/// The bearer of a worker that runs on its own.
pub fn bearer(path: &Path) -> Result<Secret, SecretError> {
    token_file::read(path).map_err(|fault| SecretError::Bearer { path: path.to_owned(), fault })
}

/// As much as a key takes, and more than anybody guesses.
pub(super) fn random() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_unspecified| NoRandomness)?;
    Ok(bytes)
}
