//! `playground bundle prune`: bundles that nobody needs go.

use clap::Args;
use sandbox::bundle::{Event, Fate, fingerprint};
use serde_json::{Value, json};

use super::super::faculties::{self, LIMIT};
use super::super::failure::Failure;
use super::super::listing::{Listing, Row};
use super::super::say;
use super::super::teller::Teller;
use super::{Machines, Sources};

/// Remove bundles of other sources than those named, and what is torn.
///
/// What is left of a build that was killed goes too, its builder with it, unless another process builds now. A bundle that
/// a machine mounts or a process uses stays, and so does the current one. Where no sources are named, only what is torn goes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Prune {
    #[command(flatten)]
    pub(super) listing: Listing<Sources>,

    /// Show what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    machines: Machines,
}

struct Pruned(sandbox::bundle::Pruned);

impl Prune {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let current = match self.listing.place.find()? {
            Some(source) => Some(fingerprint(&source).await.map_err(faculties::failure)?),
            None => None,
        };
        let workshop = self.machines.workshop(&self.listing.place, LIMIT)?;
        let teller = Teller::new();
        let watch = |event: Event<'_>| teller.tell(event);
        let pruned = workshop.prune(current.as_ref(), self.dry_run, &watch).await.map_err(faculties::failure)?;
        let gone = pruned.iter().filter(|pruned| pruned.went).count();
        let bundles = format!("{gone} bundle{}", if gone == 1 { "" } else { "s" });
        say::talk(&if self.dry_run { format!("would remove {bundles}") } else { format!("removed {bundles}") });
        if pruned.iter().any(|pruned| pruned.fate == Fate::Unknown) {
            say::talk("which of the others are stale is known only with --faculties-src");
        }
        let rows: Vec<_> = pruned.into_iter().map(Pruned).collect();
        self.listing.print("bundles", &rows);
        Ok(())
    }
}

impl Row for Pruned {
    fn columns(&self) -> Vec<Option<String>> {
        let what = if self.0.went { "removed" } else { "kept" };
        vec![Some(self.0.shelved.name.clone()), Some(self.0.fate.word().to_owned()), Some(what.to_owned())]
    }

    fn object(&self) -> Value {
        let shelved = &self.0.shelved;
        json!({
            "fingerprint": shelved.name, "state": self.0.fate.word(), "removed": self.0.went, "bytes": shelved.bytes,
            "machines": shelved.machines,
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground bundle prune --faculties-src ~/src/faculties --dry-run
  playground bundle prune --faculties-src ~/src/faculties";
