//! `playground user`: tenants, made and removed by the operator alone.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use kit::Tenant;

use super::backend::Backend;
use super::door::Door;
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use super::store::{self, Reserved, Store};
use crate::admin::operator::{Answer, PileKept, PileWish, Request};
use crate::identity::Catalogue;
use crate::identity::store::{Ledger, NewCredential};
use crate::state::StateDir;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct User {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Create),
    List(List),
    Destroy(Destroy),
}

/// Make a tenant's sandbox, then mint a token for it; the token is printed once, alone on stdout.
#[derive(Debug, Args)]
#[command(after_help = CREATE)]
struct Create {
    /// 1 to 32 of a-z, 0-9 and `-`, beginning with a letter or digit.
    #[arg(value_parser = Tenant::parse_new)]
    name: Tenant,

    #[command(flatten)]
    pile: PileFlags,

    /// Write the token to this new file, readable by you alone, and print the path instead.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct PileFlags {
    /// Make an append-only pile, and fail where that cannot be enforced [default: make one where it can].
    #[arg(long)]
    pile: bool,
    /// Make a pile even where nothing keeps the tenant from overwriting it.
    #[arg(long)]
    pile_unenforced: bool,
    /// Make no pile.
    #[arg(long)]
    no_pile: bool,
}

/// List the tenants, one a line: name, then `live` or `down`.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
struct List {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

/// Revoke a tenant's tokens, end its processes and remove its files. The pile stays unless you say otherwise.
#[derive(Debug, Args)]
#[command(after_help = DESTROY)]
struct Destroy {
    #[arg(value_parser = Tenant::parse)]
    name: Tenant,

    /// Do not ask for the name to be typed again.
    #[arg(long)]
    yes: bool,

    /// Remove the pile too.
    #[arg(long)]
    delete_pile: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

impl User {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Create(create) => create.run().await,
                Verb::List(list) => list.run().await,
                Verb::Destroy(destroy) => destroy.run().await,
            }
        })
    }
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        self.backend.needed()?;
        let out = self.out.map(Reserved::new).transpose()?;
        let state = self.place.open()?;
        let door = Door::open(&state).await?;
        let made = door.ask(Request::Create { tenant: self.name.clone(), pile: self.pile.wish() }).await;
        let closed = door.close().await;
        let made = made?;
        closed?;
        if let Answer::Created { new, pile } = made {
            say::talk(&made_line(&self.name, new, pile));
        }
        let wanted = NewCredential {
            tenant: self.name,
            catalogue: Catalogue::Sandbox,
            backend: self.backend.name().to_owned(),
            name: None,
        };
        store::mint(&self.store.ledger(&state), wanted, out).await
    }
}

/// What became of the sandbox, for the person who watches.
pub(super) fn made_line(tenant: &Tenant, new: bool, pile: PileKept) -> String {
    let made = if new { "made the sandbox of" } else { "found the sandbox of" };
    let pile = match pile {
        PileKept::Enforced => "with an append-only pile",
        PileKept::Unenforced => "with a pile that nothing keeps from being overwritten",
        PileKept::None => "without a pile",
    };
    format!("{made} {tenant}, {pile}")
}

impl PileFlags {
    fn wish(&self) -> PileWish {
        match (self.pile, self.pile_unenforced, self.no_pile) {
            (true, ..) => PileWish::Enforced,
            (false, true, _) => PileWish::Unenforced,
            (false, false, true) => PileWish::None,
            (false, false, false) => PileWish::IfEnforceable,
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        self.backend.needed()?;
        let state = self.place.open()?;
        let mut tenants = BTreeMap::new();
        for credential in store::listed(&self.store.ledger(&state)).await? {
            tenants.insert(credential.tenant, false);
        }
        match Door::open(&state).await {
            Ok(door) => {
                let listed = door.ask(Request::List).await;
                door.close().await?;
                if let Answer::Tenants(sandboxes) = listed? {
                    tenants.extend(sandboxes.into_iter().map(|sandbox| (sandbox.tenant, sandbox.live)));
                }
            }
            // No sandbox lives on a host that cannot isolate, and the other tenants are known all the same.
            Err(fault) if fault.is_no_isolation() => say::talk(&format!("warning: {fault}")),
            Err(fault) => return Err(fault),
        }
        if tenants.is_empty() {
            say::talk("there is no tenant yet; make one with: playground user create NAME");
        }
        for (tenant, live) in tenants {
            say::data(&format!("{tenant}\t{}", if live { "live" } else { "down" }));
        }
        Ok(())
    }
}

impl Destroy {
    async fn run(self) -> Result<(), Failure> {
        self.backend.needed()?;
        let state = self.place.open()?;
        let ledger = self.store.ledger(&state);
        let door = Door::open(&state).await?;
        let done = self.remove(&state, &door, &ledger).await;
        let closed = door.close().await;
        done.and(closed)
    }

    async fn remove(&self, state: &StateDir, door: &Door, ledger: &Ledger) -> Result<(), Failure> {
        let tokens = store::listed(ledger).await?.iter().filter(|credential| credential.tenant == self.name).count();
        let there = There::ask(door, &self.name, tokens).await?;
        if !there.sandbox && tokens == 0 && !(self.delete_pile && there.pile.is_some()) {
            return Err(self.missing(&there));
        }
        self.confirm(&there)?;
        // First, so that nothing new is started in the sandbox that goes.
        let revoked = store::remove_tenant(ledger, &self.name).await?;
        if self.store.named().is_none() {
            state.forget_token(&self.name)?;
        }
        if there.sandbox || (self.delete_pile && there.pile.is_some()) {
            door.ask(Request::Destroy { tenant: self.name.clone(), delete_pile: self.delete_pile }).await?;
        }
        say::talk(&format!(
            "removed {}: {}",
            self.name,
            There { tokens: revoked, ..there.clone() }.goes(self.delete_pile)
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

    /// The command that removes the pile as well.
    fn with_pile(&self) -> String {
        let state = self.place.named().map(|path| format!(" --state {}", say::quoted(&path.display().to_string())));
        format!("playground user destroy {} --delete-pile{}", self.name, state.unwrap_or_default())
    }

    fn confirm(&self, there: &There) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let goes = there.goes(self.delete_pile);
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::message(Code::Interrupted, format!("{} was not removed", self.name))
                .hint(format!("add --yes where nobody can be asked; it removes {goes}")));
        }
        let stays = match &there.pile {
            Some(pile) if !self.delete_pile => format!(" The pile {} stays.", pile.display()),
            Some(_) | None => String::new(),
        };
        say::insist(&format!("This removes of {}: {goes}.{stays} Type its name to go on:", self.name));
        let mut typed = String::new();
        io::stdin().lock().read_line(&mut typed).map_err(anyhow::Error::new)?;
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
}

impl There {
    async fn ask(door: &Door, tenant: &Tenant, tokens: usize) -> Result<Self, Failure> {
        match door.ask(Request::Look { tenant: tenant.clone() }).await? {
            Answer::Found { sandbox, pile } => Ok(Self { sandbox, pile, tokens }),
            Answer::Created { .. } | Answer::Destroyed | Answer::Tenants(_) | Answer::Refused { .. } => {
                Err(Failure::message(Code::Unreachable, "the running service answered something else"))
            }
        }
    }

    /// What is removed, as a list of words.
    fn goes(&self, delete_pile: bool) -> String {
        let tokens = format!("{} token{}", self.tokens, if self.tokens == 1 { "" } else { "s" });
        let mut goes = Vec::new();
        if self.sandbox {
            goes.extend(["its processes".to_owned(), "its files".to_owned()]);
        }
        if self.sandbox || self.tokens > 0 {
            goes.push(tokens);
        }
        if delete_pile && self.pile.is_some() {
            goes.push("its pile, for good".to_owned());
        }
        goes.join(", ")
    }
}

const EXAMPLE: &str = "\
Example:
  playground user create alice --out alice.token
  playground user list";

const CREATE: &str = "\
Example:
  playground user create alice --out alice.token
  playground user create bob --no-pile > bob.token";

const LIST: &str = "\
Example:
  playground user list | cut -f1";

const DESTROY: &str = "\
Example:
  playground user destroy alice --yes
  playground user destroy alice --delete-pile     # the pile as well, also later, when the rest is gone";
