//! `playground check-config`: what `serve` would make of the same words, without serving.

use clap::Args;
use serde_json::json;

use super::failure::{Code, Failure};
use super::place::Door;
use super::say;
use super::serve::{Serve, Settled};
use crate::app;
use crate::config::file;
use crate::telemetry::Verbosity;

/// Read all that `serve` with the same flags would read, and say everything that stands in its way.
///
/// Nothing is served, nothing is listened on, and nothing is made: also the state directory need not be there yet. What is
/// no TOML is told first; all else that is wrong at once, one problem a line; the exit code is 5 where there is one. What is
/// served all the same, but should be known, is a warning, and changes no exit code.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct CheckConfig {
    /// Print a playground.toml with every key, its default and what it means, and check nothing.
    #[arg(long)]
    print_example: bool,

    /// Print one JSON object, with the problems and the warnings.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    serve: Serve,
}

impl CheckConfig {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json
    }

    pub(super) fn run(self, verbosity: Verbosity) -> Result<u8, Failure> {
        if self.print_example {
            say::data(file::EXAMPLE);
            return Ok(0);
        }
        let Settled { config, mut faults } = self.serve.settle(verbosity, Door::Look);
        if let Some(usage) = faults.iter().position(Failure::is_usage) {
            return Err(faults.swap_remove(usage));
        }
        let mut problems: Vec<_> = faults.iter().flat_map(Failure::problems).collect();
        let warnings = config.as_ref().map(app::warnings).unwrap_or_default();
        problems.extend(config.iter().flat_map(app::problems));
        if self.json {
            say::data(&json!({ "v": 1, "problems": problems, "warnings": warnings }).to_string());
        } else {
            tell(&problems, &warnings);
        }
        Ok(if problems.is_empty() { 0 } else { Code::Problems as u8 })
    }
}

fn tell(problems: &[String], warnings: &[String]) {
    for warning in warnings {
        say::talk(&format!("warning: {warning}"));
    }
    for problem in problems {
        say::data(problem);
    }
    if problems.is_empty() {
        say::talk("no problems");
    }
}

const EXAMPLE: &str = "\
Example:
  playground check-config --print-example > playground.toml
  playground check-config --config playground.toml && playground serve --config playground.toml

Exit codes: 0 no problems, 2 usage, 5 problems.";
