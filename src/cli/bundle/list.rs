//! `playground bundle list`: what was built.

use std::time::Duration;

use clap::Args;
use sandbox::bundle::{Fate, Fingerprint, Shelved, fingerprint};
use serde_json::{Value, json};

use super::super::faculties;
use super::super::failure::Failure;
use super::super::listing::{Listing, Row};
use super::super::say;
use super::super::token::rfc3339;
use super::Sources;

/// List the bundles that were built on this host, one a line.
///
/// The columns, with `-` where there is nothing to say: the beginning of its fingerprint, what it is (current or stale, where
/// the sources are named; mounted by a machine; in use by a process; torn, which a killed build leaves; else unknown), its
/// size, its age, and the machines that mount it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) listing: Listing<Sources>,
}

/// One bundle, to whoever has these sources.
pub(super) struct Known<'a> {
    pub(super) shelved: &'a Shelved,
    pub(super) fate: Fate,
    pub(super) current: Option<&'a Fingerprint>,
    pub(super) now: Duration,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let cache = faculties::cache()?;
        let current = match self.listing.place.find()? {
            Some(source) => Some(fingerprint(&source).await.map_err(faculties::failure)?),
            None => None,
        };
        let shelf = cache.shelf().map_err(Failure::new)?;
        if shelf.is_empty() {
            say::talk("there is no bundle yet; make one with: playground bundle build --faculties-src DIR");
        }
        let (current, now) = (current.as_ref(), kit::clock::since_epoch());
        let rows: Vec<_> =
            shelf.iter().map(|shelved| Known { fate: shelved.fate(current, false), shelved, current, now }).collect();
        self.listing.print("bundles", &rows);
        Ok(())
    }
}

impl Known<'_> {
    fn age(&self) -> Option<u64> {
        self.shelved.made.map(|made| self.now.saturating_sub(made).as_secs())
    }
}

impl Row for Known<'_> {
    fn columns(&self) -> Vec<Option<String>> {
        vec![
            Some(self.shelved.name.clone()),
            Some(self.fate.word().to_owned()),
            Some(format!("{} MiB", self.shelved.bytes.div_ceil(1 << 20))),
            self.age().map(|age| format!("{age} s")),
            Some(self.shelved.machines.join(",")).filter(|machines| !machines.is_empty()),
        ]
    }

    fn object(&self) -> Value {
        let Shelved { name, is_complete, bytes, made, machines, is_held } = self.shelved;
        json!({
            "fingerprint": name, "state": self.fate.word(), "complete": is_complete, "bytes": bytes,
            "current": self.current.map(|current| current.short() == name),
            "built": made.map(rfc3339), "age_seconds": self.age(), "machines": machines, "in_use": is_held,
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground bundle list --faculties-src ~/src/faculties
  playground bundle list --json";
