//! The label of a tenant that is let in, which must be one that somebody can have.

use std::path::{Path, PathBuf};

use clap::Args;
use kit::Tenant;

use super::failure::{Code, Failure};
use super::place::Place;
use super::store::{self, Store};
use super::worker::unusable;
use crate::config::file::File;
use crate::worker::entry::Entry;
use crate::worker::manifest;

/// Where a label that no tenant is newly made with may be known from.
#[derive(Clone, Debug, Args)]
pub(super) struct Known {
    /// The list of native workers that `serve` is started with, where its tenants have names that no new sandbox may have
    /// [default: that of the playground.toml].
    #[arg(long, value_name = "FILE", alias = "faculties-workers")]
    workers: Option<PathBuf>,
}

impl Known {
    /// Refuses a label that no tenant can be made with and that nothing here knows: what it opened would be nobody's.
    pub(super) async fn check(&self, tenant: &Tenant, place: &Place, store: &Store) -> Result<(), Failure> {
        if tenant.is_portable() {
            return Ok(());
        }
        if place.seen_if_there()?.is_some_and(|state| sandbox::is_known(&state.sandbox(), tenant)) {
            return Ok(());
        }
        if let Some(ledger) = store.ledger_seen(place)?
            && store::listed(&ledger).await?.iter().any(|credential| credential.tenant == *tenant)
        {
            return Ok(());
        }
        if self.has_worker(tenant, &place.file()?)? { Ok(()) } else { Err(stranger(tenant)) }
    }

    fn has_worker(&self, tenant: &Tenant, file: &File) -> Result<bool, Failure> {
        let manifest = self.workers.as_deref().or(file.workers.as_deref());
        let listed = manifest.map(entries).transpose()?.unwrap_or_default();
        let mut tenants =
            listed.iter().chain(file.worker.iter().map(|worker| &worker.entry)).map(|entry| &entry.tenant);
        Ok(tenants.any(|known| known == tenant))
    }
}

fn entries(list: &Path) -> Result<Vec<Entry>, Failure> {
    manifest::text(list).and_then(|text| manifest::listed(list, &text)).map_err(unusable)
}

fn stranger(tenant: &Tenant) -> Failure {
    Failure::message(
        Code::Missing,
        format!("there is no tenant `{tenant}`, and none can be made with that name: use 1 to 32 of a-z, 0-9 and `-`, beginning with a letter or digit"),
    )
    .hint("mend the name; or, if it is that of a native worker, name what `serve` is started with: --workers FILE or --config playground.toml")
}
