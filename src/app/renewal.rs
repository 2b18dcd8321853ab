//! What a service begins with where an ACME authority gives its certificate.

use std::io;
use std::path::PathBuf;

use super::words::BeginAcme;
use crate::acme::Kept;
use crate::config::Config;
use crate::outbound::{BadTrust, Trust};
use crate::regular;
use crate::store::{ChangeError, Loose, Writer};

/// Why no authority can be asked.
#[derive(Debug, thiserror::Error)]
pub enum AcmeFault {
    #[error("what was kept of the ACME authority")]
    Kept(#[from] ChangeError),
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("use {}", .0.display())]
    Trust(PathBuf, #[source] BadTrust),
}

/// What was kept of it, with where more of it is; nothing where none is asked.
pub(super) fn begin(config: &Config) -> Result<Option<(BeginAcme, Writer<Kept>)>, AcmeFault> {
    let (Some(settings), Some(state)) = (&config.acme, &config.state) else { return Ok(None) };
    let writer = Writer::at(state.acme(), Loose::Refuse);
    let kept = Box::new(writer.read()?.document);
    let (mut trust, faults) = Trust::of_system();
    for fault in faults {
        tracing::warn!(fault, "an authority of this system cannot be read and is not believed");
    }
    if let Some(path) = &config.acme_trust {
        let read = |fault| AcmeFault::Read(path.clone(), fault);
        let text = regular::text(path, MOST_BYTES).map_err(|fault| read(fault.into()))?;
        let text = text.ok_or_else(|| read(io::ErrorKind::FileTooLarge.into()))?;
        trust = trust.with_loopback(text.as_bytes()).map_err(|fault| AcmeFault::Trust(path.clone(), fault))?;
    }
    Ok(Some((BeginAcme { settings: settings.clone(), kept, trust }, writer)))
}

/// Far more than any certificate has.
const MOST_BYTES: usize = 1024 * 1024;
