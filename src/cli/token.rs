//! `playground token`: the credentials that clients present.

use std::collections::HashSet;
use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat};
use clap::builder::TypedValueParser as _;
use clap::{Args, Subcommand, ValueEnum};
use kit::{Secret, Tenant};

use super::backend::Backend;
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use super::store::{self, Reserved, Store};
use crate::identity::Catalogue;
use crate::identity::store::{Listed, NewCredential, Upgraded, ids_meant};
use crate::worker::manifest;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Token {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Mint(Box<Mint>),
    List(List),
    Revoke(Revoke),
    Upgrade(Box<Upgrade>),
}

/// Mint another token for a tenant; it is printed once, alone on stdout.
#[derive(Debug, Args)]
#[command(after_help = MINT)]
struct Mint {
    #[arg(value_parser = Tenant::parse)]
    tenant: Tenant,

    /// What you call it, such as the machine it is for.
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,

    /// What it opens.
    #[arg(long, value_enum, default_value = "sandbox")]
    catalogue: Opens,

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Opens {
    /// The tenant's sandbox.
    Sandbox,
    /// The worker that the list of native workers maps the tenant to.
    Native,
}

/// List the tokens, one a line: id, tenant, what it opens, when it was made, its label. Never the secret.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
struct List {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

/// Revoke a token by its id, or by itself; the running service refuses it at its next request.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
struct Revoke {
    /// As `playground token list` shows it, or the whole token.
    #[arg(value_name = "ID", value_parser = clap::builder::StringValueParser::new().map(Secret::new))]
    id: Secret,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

/// Replace the tokens that a store of the original keeps in clear with hashes; every token goes on working.
#[derive(Debug, Args)]
#[command(after_help = UPGRADE)]
struct Upgrade {
    /// The list of native workers that `serve --workers` uses: its tenants' tokens open their worker.
    #[arg(long, value_name = "FILE", conflicts_with = "faculties_workers")]
    workers: Option<PathBuf>,

    /// The list that `serve --faculties-workers` uses: every token opens a native worker.
    #[arg(long, value_name = "FILE")]
    faculties_workers: Option<PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,

    #[command(flatten)]
    backend: Backend,
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Mint(mint) => mint.run().await,
                Verb::List(list) => list.run().await,
                Verb::Revoke(revoke) => revoke.run().await,
                Verb::Upgrade(upgrade) => upgrade.run().await,
            }
        })
    }
}

impl Mint {
    async fn run(self) -> Result<(), Failure> {
        let out = self.out.map(Reserved::new).transpose()?;
        let ledger = self.store.ledger_of(&self.place)?;
        // Another store may belong to a state that is not ours to look at.
        if self.catalogue == Opens::Sandbox && self.store.named().is_none() {
            let state = self.place.open()?;
            if !sandbox::is_known(&state.sandbox(), &self.tenant) {
                say::talk(&format!(
                    "warning: there is no tenant {0} yet, so this token opens nothing until: playground user create {0}",
                    self.tenant
                ));
            }
        }
        let wanted = NewCredential {
            tenant: self.tenant,
            catalogue: match self.catalogue {
                Opens::Sandbox => Catalogue::Sandbox,
                Opens::Native => Catalogue::Native,
            },
            backend: self.backend.name().to_owned(),
            name: self.name,
        };
        store::mint(&ledger, wanted, out).await
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let listed = store::listed(&self.store.ledger_of(&self.place)?).await?;
        if listed.is_empty() {
            say::talk("there is no token yet; mint one with: playground token mint TENANT");
        }
        for credential in listed {
            say::data(&row(&credential));
        }
        Ok(())
    }
}

impl Revoke {
    async fn run(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        let meant = ids_meant(&self.id);
        let listed = store::listed(&ledger).await?;
        // What was typed is not repeated: it may be a secret.
        let Some(id) = meant.into_iter().find(|id| listed.iter().any(|credential| credential.id == *id)) else {
            return Err(Failure::message(Code::Missing, "there is no such token")
                .hint("`playground token list` shows the ids of those there are"));
        };
        let told = format!("revoked {id}");
        store::on_full_ledger(&ledger, move |ledger| ledger.revoke(&id)).await?;
        say::talk(&told);
        Ok(())
    }
}

impl Upgrade {
    async fn run(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        let every = self.faculties_workers.is_some();
        let native: HashSet<Tenant> = match self.workers.or(self.faculties_workers) {
            Some(file) => {
                let manifest = manifest::load(&file).map_err(|faults| {
                    Failure::all(faults.into_iter().map(|fault| Failure::new(fault).code(Code::Configuration)))
                })?;
                manifest.workers.into_iter().map(|(entry, _)| entry.tenant).collect()
            }
            None => HashSet::new(),
        };
        let backend = self.backend.name().to_owned();
        let upgraded = store::on_ledger(&ledger, move |ledger| {
            ledger.upgrade(&backend, |tenant| match every || native.contains(tenant) {
                true => Catalogue::Native,
                false => Catalogue::Sandbox,
            })
        });
        match upgraded.await? {
            Upgraded::Hashed(count) => {
                say::talk(&format!("{count} tokens are kept as hashes now; each goes on working"))
            }
            Upgraded::Already => say::talk("there was nothing to do: the store holds no token in clear"),
        }
        Ok(())
    }
}

fn row(credential: &Listed) -> String {
    let opens = match (credential.catalogue, &credential.backend) {
        (Some(Catalogue::Sandbox), _) => "sandbox",
        (Some(Catalogue::Native), _) => "native",
        (None, Some(backend)) => backend,
        (None, None) => "-",
    };
    let made = credential.created.map_or_else(|| "-".to_owned(), |created| rfc3339(created.as_secs()));
    let name = credential.name.as_deref().unwrap_or("-");
    format!("{}\t{}\t{opens}\t{made}\t{name}", credential.id, credential.tenant)
}

/// Seconds since the epoch as a UTC time, to the second.
fn rfc3339(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .map_or_else(|| "-".to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

const EXAMPLE: &str = "\
Example:
  playground token mint alice --name laptop --out laptop.token
  playground token list";

const MINT: &str = "\
Example:
  playground token mint alice --name laptop --out laptop.token";

const LIST: &str = "\
Example:
  playground token list | grep alice";

const REVOKE: &str = "\
Example:
  playground token revoke \"$(playground token list | awk '$2 == \"alice\" { print $1; exit }')\"";

const UPGRADE: &str = "\
Example:
  playground token upgrade --tokens tokens.json
  playground token upgrade --tokens tokens.json --backend jail --faculties-workers workers.json";

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn seconds_since_the_epoch_become_a_date() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_796_000_523, "2026-11-30T01:02:03Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
