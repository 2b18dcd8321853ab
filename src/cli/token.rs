//! `playground token`: the credentials that clients present.

mod list;
mod mint;
mod moment;
mod revoke;
mod rotate;
mod upgrade;

use clap::{Args, Subcommand};
use kit::Secret;

use super::failure::{Code, Failure};
use super::store;
use crate::identity::CredentialId;
use crate::identity::store::{Ledger, ids_meant};
pub(super) use moment::{Expiry, rfc3339};

use list::List;
use mint::Mint;
use revoke::Revoke;
use rotate::Rotate;
use upgrade::Upgrade;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Token {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Mint(Box<Mint>),
    List(List),
    Rotate(Box<Rotate>),
    Revoke(Revoke),
    Upgrade(Box<Upgrade>),
}

impl Token {
    pub(super) fn is_for_programs(&self) -> bool {
        match &self.verb {
            Verb::List(list) => list.asked.listing.json,
            Verb::Mint(_) | Verb::Rotate(_) | Verb::Revoke(_) | Verb::Upgrade(_) => false,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Mint(mint) => mint.run().await,
                Verb::List(list) => list.run().await,
                Verb::Rotate(rotate) => rotate.run().await,
                Verb::Revoke(revoke) => revoke.run().await,
                Verb::Upgrade(upgrade) => upgrade.run().await,
            }
        })
    }
}

/// The token of the store that a person means by what they typed, which is not repeated: it may be a secret.
async fn meant(ledger: &Ledger, typed: &Secret) -> Result<CredentialId, Failure> {
    let listed = store::listed(ledger).await?;
    let known = |id: &CredentialId| listed.iter().any(|credential| credential.id == *id);
    ids_meant(typed).into_iter().find(known).ok_or_else(|| {
        Failure::message(Code::Missing, "there is no such token")
            .hint("`playground token list` shows the ids of those there are")
    })
}

const EXAMPLE: &str = "\
Example:
  playground token mint alice --name laptop --out laptop.token
  playground token list";
