//! `playground user list`: who has a sandbox or a token.

use std::collections::BTreeMap;

use clap::Args;

use crate::admin::words::{Answer, Request};
use crate::cli::backend::Backend;
use crate::cli::door::Door;
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Store};

/// List the tenants, one a line: name, then `live` or `down`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct List {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        self.backend.needed()?;
        let state = self.place.open()?;
        let mut tenants = BTreeMap::new();
        for credential in store::listed(&self.store.ledger(&state)).await? {
            tenants.insert(credential.tenant, false);
        }
        match Door::open(&state).await {
            Ok(door) => {
                let listed = door.ask(Request::List).await;
                door.close().await?;
                if let Answer::Tenants(sandboxes) = listed? {
                    tenants.extend(sandboxes.into_iter().map(|sandbox| (sandbox.tenant, sandbox.live)));
                }
            }
            // No sandbox lives on a host that cannot isolate, and the other tenants are known all the same.
            Err(fault) if fault.is_no_isolation() => say::talk(&format!("warning: {fault}")),
            Err(fault) => return Err(fault),
        }
        if tenants.is_empty() {
            say::talk("there is no tenant yet; make one with: playground user create NAME");
        }
        for (tenant, live) in tenants {
            say::data(&format!("{tenant}\t{}", if live { "live" } else { "down" }));
        }
        Ok(())
    }
}

const EXAMPLE: &str = "\
Example:
  playground user list | cut -f1";
