//! Isolation by jails of a FreeBSD host, this one or another by ssh.
//!
//! ```text
//! host ── programs ──> dataset of the tenant (a clone) = root folder of its jail
//!   │                    ├─ /pile/self.pile, /pile/self.key, /shared/shared.pile: single files of the host's
//!   │                    └─ commands: reaper ─ jexec ─ sh
//!   └─ PILES/JAIL/self.pile, self.key, .tenant: they outlive the jail
//! ```
//!
//! It promises that a tenant sees its own files, its own pile and the shared one, both of which only grow, and no network
//! unless the operator says so; that nothing is destroyed whose owner is not known to be the tenant, and nothing undone
//! that this run has not made. Names and layout are the original's, so that boxes that it made are used as they are.
//!
//! It cannot promise that a command in the background is dead but as root of this very host: elsewhere none is admitted.

mod ask;
mod assurances;
mod backend;
mod converge;
mod exec;
mod facts;
mod fault;
mod jails;
mod names;
mod network;
mod persona;
mod places;
mod plan;
mod provision;
mod reaper;
mod reattach;
mod records;
pub mod rehearsal;
mod remove;
mod settings;
mod shell;
#[cfg(test)]
mod tests;
mod text;
mod turns;

use std::sync::Arc;

use self::ask::Host;
use self::backend::JailBackend;
pub use self::fault::JailFault;
use self::jails::Jails;
pub use self::names::JailName;
pub use self::network::Network;
pub use self::persona::Persona;
use self::reaper::Reaper;
pub use self::settings::{Reach, Settings};
pub use self::text::{Collection, Dataset, HostPath, Interface, Misspelt, Prefix, Quota, Relations, Snapshot};
use super::host::{Local, Runner, Ssh};
use super::{Backend, BackendError, Config, NoIsolation};
use crate::random;

/// Opens the backend.
///
/// # Errors
/// When nobody said where the jails are, or that host does not answer.
pub async fn open(config: Config, settings: Settings) -> Result<Arc<dyn Backend>, BackendError> {
    let runner: Arc<dyn Runner> = match &settings.reach {
        Reach::Local => Arc::new(Local::new(settings.surroundings.clone())),
        Reach::Ssh(host) => Arc::new(Ssh::new(host.clone(), settings.surroundings.clone())),
        Reach::Unsaid => {
            return Err(BackendError::NoIsolation(NoIsolation {
                what: "the jail backend".to_owned(),
                why: "it is not said which host has the jails".to_owned(),
                remedy: "--jail-local means this one, --jail-host HOST another".to_owned(),
            }));
        }
    };
    let reaper = Reaper::of(&*runner, config.program.to_string_lossy().into_owned());
    let host = Host::new(runner, settings.admin_limit());
    let backend = JailBackend::open(Jails::new(settings, host, reaper, config.common, new_key)).await?;
    Ok(Arc::new(backend))
}

/// What a new key consists of: 64 hex digits from the kernel's own randomness.
fn new_key() -> String {
    format!("{:032x}{:032x}", random::bits(), random::bits())
}
