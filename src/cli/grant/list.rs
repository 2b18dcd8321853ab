//! `playground grant list`: who let which client in.

use clap::Args;
use kit::Tenant;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use super::super::token::rfc3339;
use crate::oauth::state::{Grant, GrantId, Moment};

/// List the grants that count, one a line. Never a token.
///
/// The columns, with `-` where there is nothing to say: id, tenant, the name that the client gave itself, the client's id,
/// scopes, when it was made, when its tokens were last renewed, and when it ends by itself.
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
    state: OAuthState,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = oauth::read(&self.state.file_of(&self.place)?).await?;
        let now = Moment::of(kit::clock::since_epoch());
        let meant = |grant: &Grant| self.tenant.as_ref().is_none_or(|tenant| *tenant == grant.tenant);
        let listed: Vec<_> = state.grants().filter(|(_, grant)| meant(grant) && grant.counts(now)).collect();
        if listed.is_empty() {
            say::talk("there is no such grant; a client gets one when somebody shows it an invite");
        }
        if self.json {
            let rows: Vec<Value> = listed.iter().map(|(id, grant)| object(id, grant)).collect();
            say::data(&json!({ "v": 1, "grants": rows }).to_string());
        } else {
            for (id, grant) in listed {
                say::data(&row(id, grant));
            }
        }
        Ok(())
    }
}

fn time(moment: Option<Moment>) -> Option<String> {
    moment.map(|moment| rfc3339(moment.since_epoch()))
}

fn row(id: &GrantId, grant: &Grant) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let columns = [
        id.to_string(),
        grant.tenant.to_string(),
        or_dash(grant.name.as_ref().map(ToString::to_string)),
        grant.client.to_string(),
        grant.scopes.to_string(),
        or_dash(time(grant.created)),
        or_dash(time(grant.renewed)),
        or_dash(time(grant.ends())),
    ];
    columns.join("\t")
}

fn object(id: &GrantId, grant: &Grant) -> Value {
    let scopes: Vec<_> = grant.scopes.iter().collect();
    json!({
        "id": id, "tenant": grant.tenant, "name": grant.name, "client": grant.client, "scopes": scopes,
        "resource": grant.resource, "made": time(grant.created), "renewed": time(grant.renewed),
        "ends": time(grant.ends()),
    })
}

const LIST: &str = "\
Example:
  playground grant list --tenant alice
  playground grant list --json";
