//! `playground client`: the programs that people may let in, as OAuth knows them.

mod add;
mod list;
mod remove;

use clap::{Args, Subcommand};

use super::failure::Failure;
use add::Add;
use list::List;
use remove::Remove;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Client {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Add(Add),
    List(List),
    Remove(Remove),
}

impl Client {
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::Add(add) => add.json,
            Verb::List(list) => list.listing.json,
            Verb::Remove(_) => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Add(add) => add.run().await,
                Verb::List(list) => list.run().await,
                Verb::Remove(remove) => remove.run().await,
            }
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground client add Claude --redirect https://claude.ai/api/mcp/auth_callback
  playground client list

Most clients register themselves. With registration = false in [oauth] of a playground.toml none does, and each is added here;
a client that names the https address of a document of its own needs neither.";
