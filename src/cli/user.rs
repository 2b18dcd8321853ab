//! `playground user`: tenants, made and removed by the operator alone.

mod create;
mod destroy;
mod list;

use clap::{Args, Subcommand};

use super::failure::Failure;

pub(super) use create::made_line;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct User {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Box<create::Create>),
    List(list::List),
    Destroy(destroy::Destroy),
}

impl User {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Create(create) => create.run().await,
                Verb::List(list) => list.run().await,
                Verb::Destroy(destroy) => destroy.run().await,
            }
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground user create alice --out alice.token
  playground user list";
