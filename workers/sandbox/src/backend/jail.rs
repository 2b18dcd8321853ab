//! Isolation by jails of a FreeBSD host.

mod settings;

use std::sync::Arc;

pub use self::settings::{InvalidNetwork, Network, Reach, Settings, quota};
use super::{Backend, BackendError, Config, NoIsolation};

/// Opens the backend.
///
/// # Errors
/// Always: this build has none.
pub async fn open(_config: Config, _settings: Settings) -> Result<Arc<dyn Backend>, BackendError> {
    Err(BackendError::NoIsolation(NoIsolation {
        what: "the jail backend".to_owned(),
        why: "it is not built yet".to_owned(),
        remedy: "use --backend linux on Linux".to_owned(),
    }))
}
