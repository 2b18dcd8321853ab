//! `playground token`: the credentials that clients present.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use kit::Tenant;

use super::backend::Backend;
use super::failure::Failure;
use super::place::Place;
use super::say;
use super::store::{self, Store};
use crate::identity::store::{Listed, NewCredential};
use crate::identity::{Catalogue, CredentialId};

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

/// Revoke a token by its id; the running service refuses it at its next request.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
struct Revoke {
    #[arg(value_parser = CredentialId::parse)]
    id: CredentialId,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

impl Token {
    pub(super) fn run(self) -> Result<(), Failure> {
        super::on_runtime(async {
            match self.verb {
                Verb::Mint(mint) => mint.run().await,
                Verb::List(list) => list.run().await,
                Verb::Revoke(revoke) => revoke.run().await,
            }
        })
    }
}

impl Mint {
    async fn run(self) -> Result<(), Failure> {
        store::refuse_overwrite(self.out.as_deref())?;
        let ledger = self.store.ledger_of(&self.place)?;
        let wanted = NewCredential {
            tenant: self.tenant,
            catalogue: match self.catalogue {
                Opens::Sandbox => Catalogue::Sandbox,
                Opens::Native => Catalogue::Native,
            },
            backend: self.backend.name().to_owned(),
            name: self.name,
        };
        store::mint(&ledger, wanted, self.out.as_deref()).await
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
        let id = self.id.clone();
        store::on_ledger(&self.store.ledger_of(&self.place)?, move |ledger| ledger.revoke(&id)).await?;
        say::talk(&format!("revoked {}", self.id));
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

/// Seconds since the epoch as a UTC time, by the proleptic Gregorian calendar.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the leap day is a year's last (Howard Hinnant's `civil_from_days`).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
