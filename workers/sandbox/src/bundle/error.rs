//! Why there is no bundle.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::cache::CacheError;
use super::source::SourceError;
use crate::backend::BackendError;
use crate::backend::host::RunError;

/// Why there is no bundle of some sources.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Host(#[from] BackendError),
    #[error("enter the builder")]
    Entered(#[from] RunError),
    #[error("there is a machine {machine} that this cache has no record of, so it is not used and not removed")]
    Stranger { machine: String },
    #[error("{} says of no builder which one it is", path.display())]
    Record { path: PathBuf },
    #[error("{holder} has built for {} s and goes on", waited.as_secs())]
    Busy { holder: String, waited: Duration },
    #[error("{what} failed ({ended}); its last lines:{}", shown(lines))]
    Failed { what: &'static str, ended: String, lines: Vec<String>, log: PathBuf },
    #[error("the faculties were not built within {} s", limit.as_secs())]
    Late { limit: Duration, log: PathBuf },
    #[error("take {program} from the builder")]
    NotMade {
        program: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("{} was changed while it was built, so what was built is not kept", folder.display())]
    Changed { folder: PathBuf },
    #[error("{} was removed as soon as it was made", path.display())]
    Gone { path: PathBuf },
    #[error("interrupted; nothing of the build is left")]
    Interrupted,
    #[error("the builder is left, since it could not be removed ({left})")]
    Left {
        left: String,
        #[source]
        source: Box<BundleError>,
    },
}

impl BundleError {
    /// What to do next.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Failed { log, .. } => Some(format!("all of its output is in {}", log.display())),
            Self::Late { log, .. } => Some(format!("what it said is in {}; --limit-s gives it longer", log.display())),
            Self::Stranger { machine } => Some(format!(
                "if nobody needs it: limactl delete --force {machine}; or choose another --instance-prefix"
            )),
            Self::Record { path } => Some(format!(
                "see with `limactl list` whether a machine that ends with -faculties-builder is left, then remove {}",
                path.display()
            )),
            Self::Busy { .. } => Some("end that process, or wait for it".to_owned()),
            Self::NotMade { .. } => {
                Some("the sources have to have a program of that name without default features".to_owned())
            }
            Self::Changed { .. } | Self::Gone { .. } => Some("try again".to_owned()),
            Self::Left { .. } => Some("the next build removes it, as does `playground bundle prune`".to_owned()),
            Self::Source(_) | Self::Cache(_) | Self::Host(_) | Self::Entered(_) | Self::Interrupted => None,
        }
    }
}

fn shown(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n    {line}")).collect()
}
