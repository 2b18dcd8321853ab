//! `playground token rotate`: a fresh token in the place of another.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser as _;
use kit::Secret;

use super::super::act;
use super::super::failure::Failure;
use super::super::place::Place;
use super::super::say;
use super::super::store::{self, Reserved, Store};
use super::meant;
use super::moment::{self, rfc3339};
use crate::audit::acts::Act;
use crate::identity::store::{Old, Rotation};

/// Mint a successor of a token, and let the old one end after a grace.
///
/// The successor has the same tenant, opens the same, has the same label, and ends by itself after as long as the old one
/// was to. It is printed once, alone on stdout. Until the grace is over both work, so that clients can be moved one after
/// the other; `playground token revoke` ends the old one before.
#[derive(Debug, Args)]
#[command(after_help = ROTATE)]
pub(super) struct Rotate {
    /// As `playground token list` shows it, or the whole token.
    #[arg(value_name = "ID", value_parser = clap::builder::StringValueParser::new().map(Secret::new))]
    id: Secret,

    /// How long the old token goes on working; 0 ends it at once.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = moment::span)]
    grace: Duration,

    /// Write the token to this new file, readable by you alone, and print the path instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

impl Rotate {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let out = self.out.map(Reserved::new).transpose()?;
        let ledger = self.store.ledger_of(&self.place)?;
        let wanted = Rotation { id: meant(&ledger, &self.id).await?, grace: self.grace };
        let old = wanted.id.clone();
        let rotated = store::on_ledger(&ledger, move |ledger| ledger.rotate(&wanted)).await?;
        let ids = [old.clone(), rotated.minted.id.clone()];
        act::record_beside(ledger.path(), &Act::new("token rotate").of(&rotated.tenant).credentials(ids));
        store::show(&ledger, &rotated.minted, &rotated.tenant, out)?;
        say::talk(&match rotated.old {
            Old::Ended => format!("{old} is refused from now on"),
            Old::EndsAt(end) => format!("{old} goes on working until {}", rfc3339(end)),
        });
        Ok(())
    }
}

const ROTATE: &str = "\
Example:
  playground token rotate 0f3a5c77b2d1 --grace 7d --out laptop.token
  playground token rotate 0f3a5c77b2d1 --grace 0";
