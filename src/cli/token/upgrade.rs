//! `playground token upgrade`: hashes in place of the original's tokens.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use kit::Tenant;

use super::super::act;
use super::super::backend::Backend;
use super::super::failure::{Code, Failure};
use super::super::place::Place;
use super::super::say;
use super::super::store::{self, Store};
use crate::audit::acts::Act;
use crate::identity::Catalogue;
use crate::identity::store::Upgraded;
use crate::worker::manifest;

/// Replace the tokens that a store of the original keeps in clear with hashes; every token goes on working.
#[derive(Debug, Args)]
#[command(after_help = UPGRADE)]
pub(super) struct Upgrade {
    /// The list of native workers that `serve --workers` uses: its tenants' tokens open their worker.
    #[arg(long, value_name = "FILE", conflicts_with = "faculties_workers")]
    workers: Option<PathBuf>,

    /// The list that `serve --faculties-workers` uses: every token opens a native worker.
    #[arg(long, value_name = "FILE")]
    faculties_workers: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

impl Upgrade {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        let every = self.faculties_workers.is_some();
        let native: HashSet<Tenant> = match self.workers.or(self.faculties_workers) {
            Some(file) => {
                let manifest = manifest::load(&file).map_err(|faults| {
                    Failure::all(faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration)))
                })?;
                manifest.workers.into_iter().map(|(entry, _)| entry.tenant).collect()
            }
            None => HashSet::new(),
        };
        let backend = self.backend.name(&self.place)?.to_owned();
        let upgraded = store::on_ledger(&ledger, move |ledger| {
            ledger.upgrade(&backend, |tenant| match every || native.contains(tenant) {
                true => Catalogue::Native,
                false => Catalogue::Sandbox,
            })
        });
        match upgraded.await? {
            Upgraded::Hashed(count) => {
                act::record_beside(ledger.path(), &Act::new("token upgrade"));
                say::talk(&format!("{count} tokens are kept as hashes now; each goes on working"))
            }
            Upgraded::Already => say::talk("there was nothing to do: the store holds no token in clear"),
        }
        Ok(())
    }
}

const UPGRADE: &str = "\
Example:
  playground token upgrade --tokens tokens.json
  playground token upgrade --tokens tokens.json --backend jail --faculties-workers workers.json";
