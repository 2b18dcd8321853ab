//! `playground client list`: which clients there are.

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::listing::{Listing, Row};
use super::super::oauth::{self, OAuthPlace};
use super::super::say;
use super::super::token::rfc3339;
use crate::oauth::state::{Client, ClientId, Moment, State};

/// List the clients, one a line. They have no secrets.
///
/// The columns, with `-` where there is nothing to say: id, the name that it gave itself or was given, whether it `registered`
/// itself or was `added`, when, when somebody last agreed to it, how many logins it has, and where it is answered. One that
/// registered itself and that nobody agrees to goes after a day; one with a document of its own is not kept here.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) listing: Listing<OAuthPlace>,
}

/// One client.
struct Known<'a> {
    id: &'a ClientId,
    client: &'a Client,
    logins: usize,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state: State = oauth::read(&self.listing.place.file()?).await?;
        let now = Moment::of(kit::clock::since_epoch());
        let known = |(id, client)| Known { id, client, logins: state.logins_of(id, now) };
        let rows: Vec<_> = state.clients().map(known).collect();
        if rows.is_empty() {
            say::talk("there is no client; most register themselves, and `playground client add` enters one");
        }
        self.listing.print("clients", &rows);
        Ok(())
    }
}

impl Row for Known<'_> {
    fn columns(&self) -> Vec<Option<String>> {
        let redirects: Vec<_> = self.client.redirects.iter().map(ToString::to_string).collect();
        vec![
            Some(self.id.to_string()),
            self.client.name.as_ref().map(ToString::to_string),
            Some(how(self.client).to_owned()),
            Some(rfc3339(self.client.created.since_epoch())),
            self.client.agreed.map(|agreed| rfc3339(agreed.since_epoch())),
            Some(self.logins.to_string()),
            Some(redirects.join(" ")),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "id": self.id, "name": self.client.name, "how": how(self.client),
            "made": rfc3339(self.client.created.since_epoch()),
            "agreed": self.client.agreed.map(|agreed| rfc3339(agreed.since_epoch())),
            "logins": self.logins, "redirects": self.client.redirects,
        })
    }
}

fn how(client: &Client) -> &'static str {
    if client.entered { "added" } else { "registered" }
}

const LIST: &str = "\
Example:
  playground client list
  playground client list --json";
