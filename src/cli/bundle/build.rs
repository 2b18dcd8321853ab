//! `playground bundle build`: a bundle of the sources as they are.

use std::time::Duration;

use clap::Args;

use super::super::faculties::{self, LIMIT};
use super::super::failure::Failure;
use super::super::say;
use super::super::teller::Doing;
use super::{Machines, Sources};

/// Build the bundle of the sources, unless there is one, and print its folder.
///
/// It is built in a Lima machine that is made for it and removed afterwards, also when the build fails or is broken off; it
/// sees the folder above the sources and cannot write to it. One build runs at a time: a second one waits, and finds what
/// the first has built. What fails is shown by its last lines, and a file with all of them is named.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Build {
    #[command(flatten)]
    sources: Sources,

    /// Seconds that the whole of it may take [default: 3600].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    limit_s: Option<u64>,

    #[command(flatten)]
    machines: Machines,
}

impl Build {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let source = self.sources.needed()?;
        let workshop = self.machines.workshop(&self.sources, self.limit_s.map_or(LIMIT, Duration::from_secs))?;
        let made = faculties::make(&workshop, &source, faculties::stopped(), &Doing::default()).await;
        let (bundle, built) = made.map_err(faculties::failure)?;
        let done = if built { "built" } else { "found" };
        say::talk(&format!("{done} the bundle {} of {}", bundle.fingerprint(), source.folder().display()));
        say::data(&bundle.path().display().to_string());
        Ok(())
    }
}

const EXAMPLE: &str = "\
Example:
  playground bundle build --faculties-src ~/src/faculties";
