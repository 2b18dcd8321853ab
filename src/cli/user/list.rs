//! `playground user list`: who has a sandbox or a token.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use super::show;
use crate::admin::words::{Answer, Request, Sandbox};
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::Failure;
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Store};

/// List the tenants, one a line: name, then `live`, `down` or `disabled`; `-` where it has tokens and no sandbox.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct List {
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

/// One tenant: how many tokens it has, and its sandbox where there is one.
type Row = (usize, Option<Sandbox>);

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = self.place.open()?;
        let mut tenants: BTreeMap<_, Row> = BTreeMap::new();
        for credential in store::listed(&self.store.ledger(&self.place, &state)?).await? {
            tenants.entry(credential.tenant).or_default().0 += 1;
        }
        match Door::open(&state, &self.place, &self.backend).await {
            Ok(door) => {
                let listed = door.ask(Request::List).await;
                door.close().await?;
                let Answer::Tenants(sandboxes) = listed? else { return Err(otherwise()) };
                for sandbox in sandboxes {
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
        let word = |sandbox: &Option<Sandbox>| sandbox.as_ref().map(show::state);
        if self.json {
            let rows: Vec<_> = tenants
                .iter()
                .map(|(tenant, (tokens, sandbox))| {
                    json!({
                        "tenant": tenant, "state": word(sandbox), "sandbox": sandbox.is_some(), "tokens": tokens,
                        "handles": sandbox.as_ref().map_or(0, |sandbox| sandbox.handles),
                        "jobs": sandbox.as_ref().map_or(0, |sandbox| sandbox.jobs),
                    })
                })
                .collect();
            say::data(&json!({ "v": 1, "tenants": rows }).to_string());
            return Ok(());
        }
        for (tenant, (_, sandbox)) in &tenants {
            say::data(&format!("{tenant}\t{}", word(sandbox).unwrap_or("-")));
        }
        Ok(())
    }
}

const EXAMPLE: &str = "\
Example:
  playground user list | cut -f1
  playground user list --json";
