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
use super::store::{self, Store};
use crate::admin::operator::{Answer, PileKept, PileWish, Request};
use crate::identity::Catalogue;
use crate::identity::store::NewCredential;

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
        store::refuse_overwrite(self.out.as_deref())?;
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
        store::mint(&self.store.ledger(&state), wanted, self.out.as_deref()).await
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
        self.confirm()?;
        let ledger = self.store.ledger(&state);
        let door = Door::open(&state).await?;
        let done = self.remove(&door, &ledger).await;
        let closed = door.close().await;
        done.and(closed)
    }

    async fn remove(&self, door: &Door, ledger: &crate::identity::store::Ledger) -> Result<(), Failure> {
        let has_sandbox = match door.ask(Request::List).await? {
            Answer::Tenants(sandboxes) => sandboxes.iter().any(|sandbox| sandbox.tenant == self.name),
            Answer::Created { .. } | Answer::Destroyed | Answer::Refused { .. } => false,
        };
        // First, so that nothing new is started in the sandbox that goes.
        let revoked = store::remove_tenant(ledger, &self.name).await?;
        if !has_sandbox && revoked == 0 {
            return Err(Failure::message(Code::Missing, format!("there is no tenant {}", self.name))
                .hint("`playground user list` shows those there are"));
        }
        if has_sandbox {
            door.ask(Request::Destroy { tenant: self.name.clone(), delete_pile: self.delete_pile }).await?;
        }
        let pile = if self.delete_pile { "with its pile" } else { "its pile, if it had one, stays" };
        say::talk(&format!("removed {}: {revoked} tokens revoked, files gone, {pile}", self.name));
        Ok(())
    }

    fn confirm(&self) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::message(Code::Interrupted, format!("{} was not removed", self.name))
                .hint("add --yes where nobody can be asked"));
        }
        say::talk(&format!("This removes the files of {}. Type its name to go on:", self.name));
        let mut typed = String::new();
        io::stdin().lock().read_line(&mut typed).map_err(anyhow::Error::new)?;
        if typed.trim_end_matches(['\r', '\n']) == self.name.as_str() {
            return Ok(());
        }
        Err(Failure::message(Code::Interrupted, format!("{} was not removed", self.name)))
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
  playground user destroy alice --yes";
