//! Isolation by virtual machines of this host, one a tenant, through `limactl`.

mod settings;

use std::sync::Arc;

pub use self::settings::Settings;
use super::{Backend, BackendError, Config, NoIsolation};

/// Opens the backend.
///
/// # Errors
/// Always: this build has none.
pub async fn open(_config: Config, _settings: Settings) -> Result<Arc<dyn Backend>, BackendError> {
    Err(BackendError::NoIsolation(NoIsolation {
        what: "the lima backend".to_owned(),
        why: "it is not built yet".to_owned(),
        remedy: "use --backend linux on Linux".to_owned(),
    }))
}
