//! `playground grant list`: who let which client in.

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::listing::{OfTenant, Row};
use super::super::oauth::{self, OAuthPlace};
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
    #[command(flatten)]
    pub(super) asked: OfTenant<OAuthPlace>,
}

/// One grant.
struct Known<'a> {
    id: &'a GrantId,
    grant: &'a Grant,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = oauth::read(&self.asked.listing.place.file()?).await?;
        let now = Moment::of(kit::clock::since_epoch());
        let meant = state.grants().filter(|(_, grant)| self.asked.means(&grant.tenant));
        let rows: Vec<_> =
            meant.filter(|(_, grant)| grant.counts(now)).map(|(id, grant)| Known { id, grant }).collect();
        if rows.is_empty() {
            say::talk("there is no such grant; a client gets one when somebody shows it an invite");
        }
        self.asked.listing.print("grants", &rows);
        Ok(())
    }
}

fn time(moment: Option<Moment>) -> Option<String> {
    moment.map(|moment| rfc3339(moment.since_epoch()))
}

impl Row for Known<'_> {
    fn columns(&self) -> Vec<Option<String>> {
        let Self { id, grant } = self;
        vec![
            Some(id.to_string()),
            Some(grant.tenant.to_string()),
            grant.name.as_ref().map(ToString::to_string),
            Some(grant.client.to_string()),
            Some(grant.scopes.to_string()),
            time(grant.created),
            time(grant.renewed),
            time(grant.ends()),
        ]
    }

    fn object(&self) -> Value {
        let Self { id, grant } = self;
        let scopes: Vec<_> = grant.scopes.iter().collect();
        json!({
            "id": id, "tenant": grant.tenant, "name": grant.name, "client": grant.client, "scopes": scopes,
            "resource": grant.resource, "made": time(grant.created), "renewed": time(grant.renewed),
            "ends": time(grant.ends()),
        })
    }
}

const LIST: &str = "\
Example:
  playground grant list --tenant alice
  playground grant list --json";
