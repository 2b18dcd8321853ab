//! `playground grant`: which clients somebody let in.

mod list;
mod revoke;

use clap::{Args, Subcommand};

use super::failure::Failure;
use list::List;
use revoke::Revoke;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Grant {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(List),
    Revoke(Revoke),
}

impl Grant {
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.asked.listing.json,
            Verb::Revoke(_) => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::List(list) => list.run().await,
                Verb::Revoke(revoke) => revoke.run().await,
            }
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground grant list
  playground grant revoke grant-0123456789ab";
