//! The log: structured lines on stderr, never on stdout.
//!
//! Secrets are types that do not print themselves, so no filter for them stands here.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::{Registry, fmt};

/// How much the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbosity(LevelFilter);

impl Verbosity {
    #[must_use]
    pub fn new(verbose: u8, quiet: bool) -> Self {
        Self(match (quiet, verbose) {
            (true, _) => LevelFilter::ERROR,
            (false, 0) => LevelFilter::INFO,
            (false, 1) => LevelFilter::DEBUG,
            (false, _) => LevelFilter::TRACE,
        })
    }

    /// As a word that a child's configuration carries.
    #[must_use]
    pub fn word(self) -> String {
        self.0.to_string()
    }

    /// The word's meaning; an unknown word is the default.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        Self(word.parse().unwrap_or(LevelFilter::INFO))
    }
}

/// Starts the log for this process. A second start changes nothing.
pub fn start(verbosity: Verbosity) {
    // The library's own lines repeat what clients send, whole and at every level: they are for who asks for everything.
    let library = if verbosity.0 == LevelFilter::TRACE { LevelFilter::TRACE } else { LevelFilter::OFF };
    let levels = Targets::new().with_default(verbosity.0).with_target("rmcp", library);
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false);
    let log = Registry::default().with(lines.with_filter(levels));
    let _ = tracing::subscriber::set_global_default(log);
}

#[cfg(test)]
mod tests {
    use super::Verbosity;

    #[test]
    fn a_verbosity_survives_as_a_word() {
        for (verbose, quiet) in [(0, true), (0, false), (1, false), (2, false), (9, false)] {
            let verbosity = Verbosity::new(verbose, quiet);
            assert_eq!(Verbosity::of_word(&verbosity.word()), verbosity);
        }
    }
}
