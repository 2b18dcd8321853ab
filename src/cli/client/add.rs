//! `playground client add`: a client that did not register itself.

use clap::Args;
use serde_json::json;

use super::super::failure::Failure;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use crate::oauth::state::{ClientName, NewClient, Order, Redirect, client_id};

/// Enter a client; its id, which is no secret, is printed alone on stdout, to be given to the client.
///
/// It has no secret and must use PKCE, as every client here. Nobody is let in by it: that takes an invite.
#[derive(Debug, Args)]
#[command(after_help = ADD)]
pub(super) struct Add {
    /// What people are shown that it is called.
    #[arg(value_name = "NAME", value_parser = name)]
    name: ClientName,

    /// Where it is answered: https, http on loopback (at any port), or a program's own scheme; repeatable.
    #[arg(long, alias = "redirect-uri", value_name = "URI", required = true, value_parser = oauth::destination)]
    redirect: Vec<Redirect>,

    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,
}

impl Add {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let file = self.state.file_of(&self.place)?;
        let id = client_id().map_err(Failure::new)?;
        let client = NewClient { id: id.clone(), redirects: self.redirect, name: Some(self.name.clone()) };
        oauth::order(&file, Order::EnterClient(client)).await?;
        if self.json {
            say::data(&json!({ "v": 1, "id": id, "name": self.name }).to_string());
        } else {
            say::data(id.as_str());
        }
        say::talk(&format!("added {id}; a person lets it in with a code of: playground invite create TENANT"));
        Ok(())
    }
}

fn name(text: &str) -> Result<ClientName, String> {
    ClientName::clean(text).ok_or_else(|| "a name has a character that can be seen".to_owned())
}

const ADD: &str = "\
Example:
  playground client add Claude --redirect https://claude.ai/api/mcp/auth_callback
  playground client add 'our tool' --redirect http://127.0.0.1/callback --redirect com.example.tool:/callback";
