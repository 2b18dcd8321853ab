//! `playground token list`: which tokens there are.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::listing::{OfTenant, Row};
use super::super::say;
use super::super::store::{self, StorePlace};
use super::moment::rfc3339;
use crate::identity::store::Listed;
use crate::identity::store::last_used::LastUsed;
use crate::identity::{Catalogue, CredentialId};

/// List the tokens, one a line. Never the secret.
///
/// The columns, with `-` where there is nothing to say: id, tenant, what it opens, when it was made, its label, when it
/// ends by itself, the id of the token that replaced it, what it may use: tools as `only:` and `not:`, and
/// scopes; and the hour in which a running service saw it last.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) asked: OfTenant<StorePlace>,
}

/// One token, as things are now.
struct Known {
    credential: Listed,
    used: Option<Duration>,
    is_over: bool,
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut listed = store::listed(&self.asked.listing.place.ledger()?).await?;
        listed.retain(|credential| self.asked.means(&credential.tenant));
        if listed.is_empty() {
            let whose = self.asked.whose();
            say::talk(&format!("there is no such token yet; mint one with: playground token mint {whose}"));
        }
        let (uses, now) = (self.uses()?, kit::clock::since_epoch());
        let known = |credential: Listed| Known {
            used: uses.get(&credential.id).copied(),
            is_over: credential.is_over(now),
            credential,
        };
        let rows: Vec<_> = listed.into_iter().map(known).collect();
        self.asked.listing.print("tokens", &rows);
        let over = rows.iter().filter(|known| known.is_over).count();
        if over > 0 {
            say::talk(&format!(
                "the time of {over} of them is over; remove those with: playground token revoke --expired"
            ));
        }
        Ok(())
    }

    /// Nothing where no state is named beside a store elsewhere.
    fn uses(&self) -> Result<BTreeMap<CredentialId, Duration>, Failure> {
        let StorePlace { place, store } = &self.asked.listing.place;
        if store.named().is_some() && place.named().is_none() {
            return Ok(BTreeMap::new());
        }
        Ok(LastUsed::in_state(place.seen()?.path()).read().unwrap_or_else(|fault| {
            say::talk(&format!("warning: when they were used last cannot be told: {}", kit::chain(&fault)));
            BTreeMap::new()
        }))
    }
}

impl Row for Known {
    fn columns(&self) -> Vec<Option<String>> {
        let Self { credential, used, .. } = self;
        vec![
            Some(credential.id.to_string()),
            Some(credential.tenant.to_string()),
            Some(opens(credential).to_owned()),
            credential.created.map(rfc3339),
            credential.name.clone(),
            credential.expires.map(rfc3339),
            credential.replaced_by.as_ref().map(ToString::to_string),
            bounds(credential),
            used.map(rfc3339),
        ]
    }

    fn object(&self) -> Value {
        let Self { credential, used, is_over } = self;
        json!({
            "id": credential.id, "tenant": credential.tenant, "opens": opens(credential),
            "made": credential.created.map(rfc3339), "name": credential.name,
            "expires": credential.expires.map(rfc3339), "expired": is_over,
            "replaced_by": credential.replaced_by, "tools": credential.reach.tools, "scopes": credential.reach.scopes,
            "last_used": used.map(rfc3339),
        })
    }
}

/// What it may use, in words; none where nobody has bounded it.
fn bounds(credential: &Listed) -> Option<String> {
    let scopes = credential.reach.scopes.iter().flatten().map(|scope| format!("scope:{scope}"));
    let all: Vec<_> = credential.reach.tools.iter().map(ToString::to_string).chain(scopes).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn opens(credential: &Listed) -> &str {
    match (credential.catalogue, &credential.backend) {
        (Some(Catalogue::Sandbox), _) => "sandbox",
        (Some(Catalogue::Native), _) => "native",
        (None, Some(backend)) => backend,
        (None, None) => "-",
    }
}

const LIST: &str = "\
Example:
  playground token list --tenant alice
  playground token list --json";
