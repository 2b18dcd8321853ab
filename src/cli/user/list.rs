//! `playground user list`: who has a sandbox or a token.

use std::collections::BTreeMap;

use clap::Args;
use kit::Tenant;
use serde_json::{Value, json};

use super::show;
use crate::admin::words::{Answer, Request, Sandbox};
use crate::cli::backend::Backend;
use crate::cli::door::{self, Door, otherwise};
use crate::cli::failure::Failure;
use crate::cli::listing::{Listing, Row};
use crate::cli::say;
use crate::cli::store::{self, StorePlace};

/// List the tenants, one a line: name, then `live`, `down` or `disabled`; `unknown` where its record cannot be read, `-` where
/// it has tokens and no sandbox.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) listing: Listing<StorePlace>,

    #[command(flatten)]
    backend: Backend,
}

/// One tenant: how many tokens it has, and its sandbox where there is one.
struct Known {
    tenant: Tenant,
    tokens: usize,
    sandbox: Option<Sandbox>,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let StorePlace { place, store } = &self.listing.place;
        let state = door::state_to_look(place, &self.backend)?;
        let mut tenants: BTreeMap<_, (usize, Option<Sandbox>)> = BTreeMap::new();
        for credential in store::listed(&store.ledger(place, &state)?).await? {
            tenants.entry(credential.tenant).or_default().0 += 1;
        }
        match Door::open(&state, place, &self.backend).await {
            Ok(door) => {
                let listed = door.ask(Request::List).await;
                door.close().await?;
                let Answer::Tenants(sandboxes) = listed? else { return Err(otherwise()) };
                for sandbox in sandboxes {
                    if let Some(why) = &sandbox.unread {
                        say::talk(&format!("warning: {}: {why}", sandbox.tenant));
                    }
                    let tenant = sandbox.tenant.clone();
                    tenants.entry(tenant).or_default().1 = Some(sandbox);
                }
            }
            // No sandbox lives on a host that cannot isolate, and the other tenants are known all the same.
            Err(fault) if fault.is_no_isolation() => say::talk(&format!("warning: {fault}")),
            Err(fault) => return Err(fault),
        }
        if tenants.is_empty() {
            say::talk("there is no tenant yet; make one with: playground user create NAME");
        }
        let known = |(tenant, (tokens, sandbox))| Known { tenant, tokens, sandbox };
        let rows: Vec<_> = tenants.into_iter().map(known).collect();
        self.listing.print("tenants", &rows);
        Ok(())
    }
}

impl Known {
    fn state(&self) -> Option<&'static str> {
        self.sandbox.as_ref().map(show::state)
    }
}

impl Row for Known {
    fn columns(&self) -> Vec<Option<String>> {
        vec![Some(self.tenant.to_string()), self.state().map(str::to_owned)]
    }

    fn object(&self) -> Value {
        let Self { tenant, tokens, sandbox } = self;
        json!({
            "tenant": tenant, "state": self.state(), "sandbox": sandbox.is_some(), "tokens": tokens,
            "handles": sandbox.as_ref().map_or(0, |sandbox| sandbox.handles),
            "jobs": sandbox.as_ref().map_or(0, |sandbox| sandbox.jobs),
        })
    }
}

const EXAMPLE: &str = "\
Example:
  playground user list | cut -f1
  playground user list --json";
