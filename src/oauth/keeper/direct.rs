//! A keeper that writes the file itself.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use kit::tasks::Tasks;

use crate::oauth::state::{Change, Outcome, View};
use crate::store::{Loose, Opener, StoreError, Watched};

use super::{File, Keeper, Unkept};

/// For a process that owns the file.
#[derive(Clone)]
pub struct Direct {
    file: File,
    watched: Watched<View>,
}

impl Direct {
    /// Reads the state for the first time; `tasks` owns the later readings.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn load(path: impl Into<PathBuf>, loose: Loose, tasks: Tasks) -> Result<Self, StoreError> {
        let path = path.into();
        let watched = Watched::load(Opener::Path(path.clone()), loose, tasks).await?;
        Ok(Self { file: File::at(path, loose), watched })
    }

    /// The file, for what an operator does with it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Keeper for Direct {
    fn view(&self) -> Pin<Box<dyn Future<Output = Arc<View>> + Send + '_>> {
        Box::pin(async move {
            self.watched.refresh().await;
            self.watched.view()
        })
    }

    fn change(&self, change: Change) -> Pin<Box<dyn Future<Output = Result<Outcome, Unkept>> + Send + '_>> {
        Box::pin(async move {
            if let Some(denied) = self.view().await.forbids(&change) {
                return Err(denied.into());
            }
            let file = self.file.clone();
            let done = tokio::task::spawn_blocking(move || file.apply(change)).await;
            let fault = match done {
                Ok(Ok(done)) => return Ok(done?),
                Ok(Err(fault)) => kit::chain(&fault),
                Err(fault) => fault.to_string(),
            };
            tracing::error!(fault, "a change of the OAuth state was not made");
            Err(Unkept::Fault)
        })
    }
}
