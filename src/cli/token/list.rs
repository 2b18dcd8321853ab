//! `playground token list`: which tokens there are.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use kit::Tenant;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::place::Place;
use super::super::say;
use super::super::store::{self, Store};
use super::moment::rfc3339;
use crate::identity::store::Listed;
use crate::identity::store::last_used::LastUsed;
use crate::identity::{Catalogue, CredentialId};

/// List the tokens, one a line. Never the secret.
///
/// The columns, with `-` where there is nothing to say: id, tenant, what it opens, when it was made, its label, when it
/// ends by itself, the id of the token that replaced it, what it may use: tools as `only:` and `not:`, and
/// scopes; and the hour in which a running service saw it last.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    /// Only this tenant's.
    #[arg(long, value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut listed = store::listed(&self.store.ledger_of(&self.place)?).await?;
        if let Some(tenant) = &self.tenant {
            listed.retain(|credential| credential.tenant == *tenant);
        }
        if listed.is_empty() {
            let whose = self.tenant.as_ref().map_or("TENANT", Tenant::as_str);
            say::talk(&format!("there is no such token yet; mint one with: playground token mint {whose}"));
        }
        let uses = self.uses()?;
        let now = kit::clock::since_epoch();
        let over = listed.iter().filter(|credential| credential.is_over(now)).count();
        if self.json {
            let rows: Vec<Value> = listed
                .iter()
                .map(|credential| object(credential, uses.get(&credential.id), credential.is_over(now)))
                .collect();
            say::data(&json!({ "v": 1, "tokens": rows }).to_string());
        } else {
            for credential in &listed {
                say::data(&row(credential, uses.get(&credential.id)));
            }
        }
        if over > 0 {
            say::talk(&format!(
                "the time of {over} of them is over; remove those with: playground token revoke --expired"
            ));
        }
        Ok(())
    }

    /// Nothing where no state is named beside a store elsewhere.
    fn uses(&self) -> Result<BTreeMap<CredentialId, Duration>, Failure> {
        if self.store.named().is_some() && self.place.named().is_none() {
            return Ok(BTreeMap::new());
        }
        Ok(LastUsed::in_state(self.place.open()?.path()).read().unwrap_or_else(|fault| {
            say::talk(&format!("warning: when they were used last cannot be told: {}", kit::chain(&fault)));
            BTreeMap::new()
        }))
    }
}

fn row(credential: &Listed, used: Option<&Duration>) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let columns = [
        credential.id.to_string(),
        credential.tenant.to_string(),
        opens(credential).to_owned(),
        or_dash(credential.created.map(rfc3339)),
        or_dash(credential.name.clone()),
        or_dash(credential.expires.map(rfc3339)),
        or_dash(credential.replaced_by.as_ref().map(ToString::to_string)),
        or_dash(bounds(credential)),
        or_dash(used.copied().map(rfc3339)),
    ];
    columns.join("\t")
}

fn object(credential: &Listed, used: Option<&Duration>, over: bool) -> Value {
    json!({
        "id": credential.id, "tenant": credential.tenant, "opens": opens(credential),
        "made": credential.created.map(rfc3339), "name": credential.name,
        "expires": credential.expires.map(rfc3339), "expired": over,
        "replaced_by": credential.replaced_by, "tools": credential.reach.tools, "scopes": credential.reach.scopes,
        "last_used": used.copied().map(rfc3339),
    })
}

/// What it may use, in words; none where nobody has bounded it.
fn bounds(credential: &Listed) -> Option<String> {
    let scopes = credential.reach.scopes.iter().flatten().map(|scope| format!("scope:{scope}"));
    let all: Vec<_> = credential.reach.tools.iter().map(ToString::to_string).chain(scopes).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn opens(credential: &Listed) -> &str {
    match (credential.catalogue, &credential.backend) {
        (Some(Catalogue::Sandbox), _) => "sandbox",
        (Some(Catalogue::Native), _) => "native",
        (None, Some(backend)) => backend,
        (None, None) => "-",
    }
}

const LIST: &str = "\
Example:
  playground token list --tenant alice
  playground token list --json";
