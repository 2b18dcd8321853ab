//! `playground invite list`: which invites there are.

use clap::Args;
use kit::Tenant;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use super::super::token::rfc3339;
use crate::oauth::state::{Invite, InviteId, Moment};

/// List the invites, one a line. Never the code.
///
/// The columns, with `-` where there is nothing to say: id, tenant, what it is worth (`open`, `used`, `expired`), how often
/// it can still be used, when it was made, when it ends by itself, and the client and the redirect that it is for.
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
        let meant = |invite: &Invite| self.tenant.as_ref().is_none_or(|tenant| *tenant == invite.tenant);
        let listed: Vec<_> = state.invites().filter(|(_, invite)| meant(invite)).collect();
        if listed.is_empty() {
            let whose = self.tenant.as_ref().map_or("TENANT", Tenant::as_str);
            say::talk(&format!("there is no such invite; make one with: playground invite create {whose}"));
        }
        let now = Moment::of(kit::clock::since_epoch());
        if self.json {
            let rows: Vec<Value> = listed.iter().map(|(id, invite)| object(id, invite, now)).collect();
            say::data(&json!({ "v": 1, "invites": rows }).to_string());
        } else {
            for (id, invite) in listed {
                say::data(&row(id, invite, now));
            }
        }
        Ok(())
    }
}

fn worth(invite: &Invite, now: Moment) -> &'static str {
    match (invite.is_spent(), invite.is_over(now)) {
        (true, _) => "used",
        (false, true) => "expired",
        (false, false) => "open",
    }
}

fn row(id: &InviteId, invite: &Invite, now: Moment) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let columns = [
        id.to_string(),
        invite.tenant.to_string(),
        worth(invite, now).to_owned(),
        invite.uses.map_or_else(|| "any".to_owned(), |uses| uses.to_string()),
        rfc3339(invite.created.since_epoch()),
        or_dash(invite.expires.map(|expires| rfc3339(expires.since_epoch()))),
        or_dash(invite.client.as_ref().map(ToString::to_string)),
        or_dash(invite.redirect.as_ref().map(ToString::to_string)),
    ];
    columns.join("\t")
}

fn object(id: &InviteId, invite: &Invite, now: Moment) -> Value {
    json!({
        "id": id, "tenant": invite.tenant, "state": worth(invite, now), "uses": invite.uses,
        "made": rfc3339(invite.created.since_epoch()),
        "expires": invite.expires.map(|expires| rfc3339(expires.since_epoch())),
        "client": invite.client, "redirect": invite.redirect,
    })
}

const LIST: &str = "\
Example:
  playground invite list --tenant alice
  playground invite list --json";
