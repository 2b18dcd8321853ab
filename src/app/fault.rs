//! Why a service did not come up.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{AcmeFault, KeyError, NoUser, Outcome, SecretError, StrictFault, TlsFault, TrustFault, WorkerFault};
use crate::admin::socket::SocketError;
use crate::config::Config;
use crate::state::StateError;
use crate::store::ChangeError;
use crate::worker::entry::Placed;
use crate::worker::manifest::ManifestFault;

/// Why a service did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Io(&'static str, #[source] io::Error),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    OAuth(#[from] ChangeError),
    #[error("the socket for monitoring")]
    Monitoring(#[from] SocketError),
    #[error(transparent)]
    Manifest(#[from] ManifestFault),
    #[error(transparent)]
    Entry(#[from] Placed),
    /// What is wrong with a file, where the configuration names it.
    #[error("{}:{line}:{column}", file.display())]
    Named {
        file: PathBuf,
        line: usize,
        column: usize,
        #[source]
        fault: Box<BuildError>,
    },
    #[error("{} faults: {}", .0.len(), first(.0))]
    Several(Vec<BuildError>),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error("a native worker of the configuration")]
    Worker(#[from] WorkerFault),
    #[error(transparent)]
    Strict(#[from] StrictFault),
    #[error("choose the edge's user")]
    User(#[from] NoUser),
    #[error(transparent)]
    Tls(#[from] TlsFault),
    #[error(transparent)]
    Acme(#[from] AcmeFault),
    #[error("whom to believe when documents are fetched")]
    Trust(#[from] TrustFault),
    #[error("the service did not start")]
    Ended(Outcome),
}

/// Each with its causes, as far as one line is one that somebody reads.
fn first(faults: &[BuildError]) -> String {
    let told: Vec<_> = faults.iter().take(MOST_TOLD).map(|fault| kit::chain(fault)).collect();
    let more = faults.len().saturating_sub(MOST_TOLD);
    let more = if more == 0 { String::new() } else { format!("; and {more} more, which check-config shows") };
    format!("{}{more}", told.join("; "))
}

impl BuildError {
    /// The same, where the configuration names the file that it is about, if it does.
    pub(super) fn named(self, config: &Config) -> Self {
        let about = if let Self::Tls(fault) = &self {
            fault.path()
        } else if let Self::Strict(fault) = &self {
            fault.path()
        } else {
            None
        };
        let place = about.and_then(|path| config.places.of(path));
        match (place, &config.file) {
            (Some((line, column)), Some(file)) => {
                Self::Named { file: file.clone(), line, column, fault: Box::new(self) }
            }
            (None, _) | (_, None) => self,
        }
    }
}

pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> BuildError {
    move |source| BuildError::Io(what, source)
}

/// Of several at once.
const MOST_TOLD: usize = 4;
