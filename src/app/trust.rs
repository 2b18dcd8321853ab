//! Whom the edge believes when it asks other machines, read for it, since it opens no file.

use std::path::PathBuf;

use crate::config::Config;
use crate::outbound::{BadTrust, Trust};
use crate::regular::{self, NotOpened};

#[derive(Debug, thiserror::Error)]
pub enum TrustFault {
    #[error("read {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is too large for a certificate", .0.display())]
    TooLarge(PathBuf),
    #[error("{}", path.display())]
    Bad {
        path: PathBuf,
        #[source]
        source: BadTrust,
    },
}

/// The authorities of this system, where the edge asks anybody at all; blocking.
pub(super) fn read(config: &Config) -> Result<Option<Trust>, TrustFault> {
    if config.oauth.is_none() && config.external.is_none() {
        return Ok(None);
    }
    let (trust, faults) = Trust::of_system();
    for fault in &faults {
        tracing::warn!(fault, "some of the system's certificate authorities cannot be read");
    }
    if trust.is_empty() {
        tracing::warn!("this system has no certificate authorities; install ca-certificates, or nobody can be asked");
    }
    let Some(path) = &config.fetch_from_loopback else { return Ok(Some(trust)) };
    tracing::warn!("documents are fetched from this machine's own loopback too; that is for tests alone");
    let text = regular::text(path, MOST_BYTES).map_err(|fault| match fault {
        NotOpened::Io(source) => TrustFault::Unreadable { path: path.clone(), source },
        fault @ (NotOpened::NotRegular(_) | NotOpened::NotHanded(_)) => {
            TrustFault::Unreadable { path: path.clone(), source: fault.into() }
        }
    })?;
    let text = text.ok_or_else(|| TrustFault::TooLarge(path.clone()))?;
    let bad = |source| TrustFault::Bad { path: path.clone(), source };
    trust.with_loopback(text.as_bytes()).map_err(bad).map(Some)
}

const MOST_BYTES: usize = 1 << 20;
