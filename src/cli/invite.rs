//! `playground invite`: what lets a person's client in.

mod create;
mod list;
mod revoke;

use clap::{Args, Subcommand};

use super::failure::Failure;
use create::{Create, Original};
use list::List;
use revoke::Revoke;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLE)]
pub(super) struct Invite {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    original: Original,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Box<Create>),
    List(List),
    Revoke(Revoke),
}

impl Invite {
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Some(Verb::Create(create)) => create.is_for_programs(),
            Some(Verb::List(list)) => list.asked.listing.json,
            Some(Verb::Revoke(_)) | None => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Some(Verb::Create(create)) => create.run().await,
                Some(Verb::List(list)) => list.run().await,
                Some(Verb::Revoke(revoke)) => revoke.run().await,
                None => self.original.run().await,
            }
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground invite create alice
  playground invite create alice --expires 1h --out alice.invite
  playground invite list
  playground invite --tenant alice --oauth-state state.json     # as the original spells it";
