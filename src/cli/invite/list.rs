//! `playground invite list`: which invites there are.

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::listing::{OfTenant, Row};
use super::super::oauth::{self, OAuthPlace};
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
    #[command(flatten)]
    pub(super) asked: OfTenant<OAuthPlace>,
}

/// One invite, as things are now.
struct Known<'a> {
    id: &'a InviteId,
    invite: &'a Invite,
    now: Moment,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = oauth::read(&self.asked.listing.place.file()?).await?;
        let now = Moment::of(kit::clock::since_epoch());
        let meant = state.invites().filter(|(_, invite)| self.asked.means(&invite.tenant));
        let rows: Vec<_> = meant.map(|(id, invite)| Known { id, invite, now }).collect();
        if rows.is_empty() {
            let whose = self.asked.whose();
            say::talk(&format!("there is no such invite; make one with: playground invite create {whose}"));
        }
        self.asked.listing.print("invites", &rows);
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

impl Row for Known<'_> {
    fn columns(&self) -> Vec<Option<String>> {
        let Self { id, invite, now } = self;
        vec![
            Some(id.to_string()),
            Some(invite.tenant.to_string()),
            Some(worth(invite, *now).to_owned()),
            Some(invite.uses.map_or_else(|| "any".to_owned(), |uses| uses.to_string())),
            Some(rfc3339(invite.created.since_epoch())),
            invite.expires.map(|expires| rfc3339(expires.since_epoch())),
            invite.client.as_ref().map(ToString::to_string),
            invite.redirect.as_ref().map(ToString::to_string),
        ]
    }

    fn object(&self) -> Value {
        let Self { id, invite, now } = self;
        json!({
            "id": id, "tenant": invite.tenant, "state": worth(invite, *now), "uses": invite.uses,
            "made": rfc3339(invite.created.since_epoch()),
            "expires": invite.expires.map(|expires| rfc3339(expires.since_epoch())),
            "client": invite.client, "redirect": invite.redirect,
        })
    }
}

const LIST: &str = "\
Example:
  playground invite list --tenant alice
  playground invite list --json";
