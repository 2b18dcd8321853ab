//! Verbs of the original that have another name here, or no meaning any more.

use clap::{Args, Subcommand};
use kit::Tenant;

use crate::cli::backend::Backend;
use crate::cli::failure::{Code, Failure};
use crate::cli::oauth::{self, OAuthState};
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Store};
use crate::identity::Catalogue;
use crate::identity::reach::Reach;
use crate::identity::store::NewCredential;
use crate::oauth::keeper::File;
use crate::oauth::state::Gone;

/// Print what a tenant's jail is called, for rules that the physical host has of it.
#[derive(Debug, Args)]
#[command(after_help = JAIL_NAME)]
pub(super) struct JailName {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    /// The jail that the tenant's is inside of, for the name that the physical host knows it by.
    #[arg(long, value_parser = parent_jail, value_name = "NAME")]
    parent_jail_name: Option<String>,

    #[command(flatten)]
    backend: Backend,
}

/// Show or replace a tenant's tokens, as the original did.
#[derive(Debug, Args)]
#[command(after_help = TOKEN)]
pub(super) struct Tokens {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the tokens of a store that keeps them in clear.
    #[command(after_help = TOKEN)]
    Show(Of),
    /// Revoke every token, invite and OAuth grant of a tenant and mint a token; it is printed once, alone on stdout.
    #[command(after_help = TOKEN)]
    Reset(Of),
}

#[derive(Debug, Args)]
struct Of {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    oauth: OAuthState,

    #[command(flatten)]
    backend: Backend,
}

impl JailName {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = self.backend.jail_name(&self.name)?;
        match &self.parent_jail_name {
            Some(parent) => say::data(&format!("{parent}.{name}")),
            None => say::data(&name.to_string()),
        }
        Ok(())
    }
}

/// The name of a jail that has others in it, as the physical host calls it.
fn parent_jail(text: &str) -> Result<String, &'static str> {
    let is_plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    if text.is_empty() || !is_plain || text.starts_with('.') || text.ends_with('.') {
        return Err("the name of a jail has letters, digits, `.`, `_` and `-`, and no dot at an end");
    }
    Ok(text.to_owned())
}

impl Tokens {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Show(of) => of.show().await,
            Verb::Reset(of) => of.reset().await,
        }
    }
}

impl Of {
    /// Where a store was named and no OAuth state, there may be a state that is not ours to look at.
    fn logins(&self) -> Result<Option<File>, Failure> {
        if self.oauth.named().is_none() && self.store.named().is_some() {
            return Ok(None);
        }
        self.oauth.file_of(&self.place).map(Some)
    }

    async fn show(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        let tenant = self.name.clone();
        let Some(tokens) = store::on_ledger(&ledger, move |ledger| ledger.tokens_in_clear(&tenant)).await? else {
            return Err(Failure::message(Code::Failed, "tokens are kept as hashes, so nobody can show them again")
                .hint(format!("mint another one with: playground token mint {}", self.name)));
        };
        if tokens.is_empty() {
            say::talk(&format!("{} has no token", self.name));
        }
        for token in tokens {
            say::data(token.expose());
        }
        Ok(())
    }

    async fn reset(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        // First, so that no client renews its tokens in between.
        if let Some(logins) = self.logins()? {
            let gone = oauth::remove_tenant(&logins, &self.name).await?;
            if gone != Gone::default() {
                say::talk(&format!("revoked of {}: {gone}", self.name));
            }
        }
        let revoked = store::remove_tenant(&ledger, &self.name).await?;
        say::talk(&format!("revoked {revoked} token{} of {}", if revoked == 1 { "" } else { "s" }, self.name));
        let backend = self.backend.name(&self.place)?.to_owned();
        let wanted = NewCredential {
            tenant: self.name,
            catalogue: Catalogue::Sandbox,
            backend,
            name: None,
            expires: None,
            reach: Reach::default(),
        };
        store::mint(&ledger, wanted, None).await
    }
}

const JAIL_NAME: &str = "\
Example:
  playground user jail-name alice";

const TOKEN: &str = "\
Example:
  playground user token reset alice";
