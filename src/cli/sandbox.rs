//! `playground sandbox`: the sandboxes' own business with the host.

mod plan;

use clap::{Args, Subcommand};

use super::failure::Failure;

/// Show what the sandboxes would have the host do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Sandbox {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Plan(Box<plan::Plan>),
}

impl Sandbox {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Plan(plan) => super::on_runtime(plan.run()),
        }
    }
}

const EXAMPLE: &str = "\
Example:
  playground sandbox plan create alice --backend jail --jail-local";
