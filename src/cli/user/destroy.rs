//! `playground user destroy`: says what goes, asks, and removes it.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use kit::Tenant;

use crate::admin::words::{Answer, Request};
use crate::audit::acts::Act;
use crate::cli::act;
use crate::cli::backend::Backend;
use crate::cli::door::{Door, otherwise};
use crate::cli::failure::{Code, Failure};
use crate::cli::oauth::{self, OAuthState};
use crate::cli::place::Place;
use crate::cli::say;
use crate::cli::store::{self, Store};
use crate::identity::store::Ledger;
use crate::oauth::state::Gone;
use crate::signal::StopSignals;
use crate::state::StateDir;

/// Revoke a tenant's tokens, invites and grants, end its processes and remove its files. The pile stays unless you say otherwise.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Destroy {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    /// Do not ask for the name to be typed again.
    #[arg(long)]
    yes: bool,

    /// Only print what would go.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Remove the pile too.
    #[arg(long)]
    delete_pile: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    oauth: OAuthState,

    #[command(flatten)]
    backend: Backend,
}

impl Destroy {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let state = self.place.open()?;
        let ledger = self.store.ledger(&self.place, &state)?;
        let door = Door::open(&state, &self.place, &self.backend).await?;
        let done = self.remove(&state, &door, &ledger).await;
        let closed = door.close().await;
        done.and(closed)
    }

    async fn remove(&self, state: &StateDir, door: &Door, ledger: &Ledger) -> Result<(), Failure> {
        let tokens = store::listed(ledger).await?.iter().filter(|credential| credential.tenant == self.name).count();
        let logins = self.oauth.file(&self.place, state)?;
        let of_logins = oauth::of_tenant(&logins, &self.name).await?;
        let there = There::ask(door, &self.name, tokens, of_logins).await?;
        if !there.sandbox && tokens == 0 && of_logins == Gone::default() && !(self.delete_pile && there.pile.is_some())
        {
            return Err(self.missing(&there));
        }
        if self.dry_run {
            say::data(&there.goes(self.delete_pile).join("\n"));
            if let Some(pile) = there.pile.filter(|_| !self.delete_pile) {
                say::talk(&format!("the pile {} stays", pile.display()));
            }
            return Ok(());
        }
        self.confirm(&there).await?;
        // First, so that no client renews its tokens meanwhile. The tokens go last: where the sandbox cannot be removed, all
        // that is needed for trying again is there still.
        let logins = oauth::remove_tenant(&logins, &self.name).await?;
        if there.sandbox || (self.delete_pile && there.pile.is_some()) {
            let removed = door.ask(Request::Destroy { tenant: self.name.clone(), delete_pile: self.delete_pile }).await;
            match removed {
                Err(fault) if fault.is_interrupted() => return Err(fault.hint(self.half_gone())),
                removed => drop(removed?),
            }
        }
        let revoked = store::remove_tenant(ledger, &self.name).await?;
        state.forget_import(&self.name)?;
        if self.store.named().is_none() {
            state.forget_token(&self.name)?;
        }
        let what = self.delete_pile.then(|| "with its pile".to_owned());
        act::record(state.path(), &Act::new("user destroy").of(&self.name).with(what));
        say::talk(&format!(
            "removed {}: {}",
            self.name,
            There { tokens: revoked, logins, ..there.clone() }.goes(self.delete_pile).join(", ")
        ));
        if let Some(pile) = there.pile.filter(|_| !self.delete_pile) {
            say::talk(&format!("kept the pile {}; remove it with: {}", pile.display(), self.with_pile()));
        }
        Ok(())
    }

    fn missing(&self, there: &There) -> Failure {
        let name = &self.name;
        match &there.pile {
            Some(pile) => Failure::message(
                Code::Missing,
                format!("there is no tenant {name}; its pile is kept in {}", pile.display()),
            )
            .hint(format!("remove it with: {}", self.with_pile())),
            None => Failure::message(Code::Missing, format!("there is no tenant {name}"))
                .hint("`playground user list` shows those there are"),
        }
    }

    /// What is told of a removal that was broken off at the sandbox.
    fn half_gone(&self) -> String {
        let name = &self.name;
        format!(
            "its logins are gone, its tokens are not, and what is left of its sandbox `playground user show {name}` tells; `playground user destroy {name}` removes the rest",
        )
    }

    /// The command that removes the pile as well.
    fn with_pile(&self) -> String {
        let state = self.place.named().map(|path| format!(" --state {}", say::quoted(&path.display().to_string())));
        format!("playground user destroy {} --delete-pile{}", self.name, state.unwrap_or_default())
    }

    async fn confirm(&self, there: &There) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let goes = there.goes(self.delete_pile).join(", ");
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::message(Code::Interrupted, format!("{} was not removed", self.name))
                .hint(format!("add --yes where nobody can be asked; it removes {goes}")));
        }
        let stays = match &there.pile {
            Some(pile) if !self.delete_pile => format!(" The pile {} stays.", pile.display()),
            Some(_) | None => String::new(),
        };
        say::insist(&format!("This removes of {}: {goes}.{stays} Type its name to go on:", self.name));
        let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
        let asked = tokio::task::spawn_blocking(|| {
            let mut typed = String::new();
            io::stdin().lock().read_line(&mut typed).map(|_| typed)
        });
        let typed = tokio::select! {
            typed = asked => typed.map_err(anyhow::Error::new)?.map_err(anyhow::Error::new)?,
            // Nobody waits for what is typed then.
            () = signals.next() => String::new(),
        };
        if typed.trim_end_matches(['\r', '\n']) == self.name.as_str() {
            return Ok(());
        }
        Err(Failure::message(Code::Interrupted, format!("{} was not removed", self.name)))
    }
}

/// What there is of a tenant before it goes.
#[derive(Clone, Debug)]
struct There {
    sandbox: bool,
    pile: Option<PathBuf>,
    tokens: usize,
    logins: Gone,
}

impl There {
    async fn ask(door: &Door, tenant: &Tenant, tokens: usize, logins: Gone) -> Result<Self, Failure> {
        let found = door.ask(Request::Look { tenant: tenant.clone() }).await?;
        let Answer::Found { sandbox, pile } = found else { return Err(otherwise()) };
        Ok(Self { sandbox, pile, tokens, logins })
    }

    /// What is removed, in words.
    fn goes(&self, delete_pile: bool) -> Vec<String> {
        let tokens = format!("{} token{}", self.tokens, if self.tokens == 1 { "" } else { "s" });
        let mut goes = Vec::new();
        if self.sandbox {
            goes.extend(["its processes".to_owned(), "its files".to_owned()]);
        }
        if self.sandbox || self.tokens > 0 {
            goes.push(tokens);
        }
        if self.logins != Gone::default() {
            goes.push(self.logins.to_string());
        }
        if delete_pile && self.pile.is_some() {
            goes.push("its pile, for good".to_owned());
        }
        goes
    }
}

const EXAMPLE: &str = "\
Example:
  playground user destroy alice --dry-run
  playground user destroy alice --yes
  playground user destroy alice --delete-pile     # the pile as well, also later, when the rest is gone";
