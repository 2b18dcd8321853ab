//! `[tls]`: what the edge speaks HTTPS with, as files.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Whose certificates clients must show.
    pub client_ca: Option<PathBuf>,
    /// For other names.
    #[serde(default)]
    pub certificate: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Tls {
    /// Every file that it names.
    pub(super) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let Self { cert, key, client_ca, certificate } = self;
        let others = certificate.iter_mut().flat_map(|pair| [&mut pair.cert, &mut pair.key]);
        [cert, key].into_iter().chain(client_ca).chain(others)
    }
}
