//! `playground token revoke`: tokens that end now.

use clap::Args;
use clap::builder::TypedValueParser as _;
use kit::{Secret, Tenant};

use super::super::act;
use super::super::failure::Failure;
use super::super::place::Place;
use super::super::say;
use super::super::store::{self, Store};
use super::meant;
use crate::audit::acts::Act;

/// Revoke a token by its id, or by itself; the running service refuses it at its next request.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
pub(super) struct Revoke {
    /// As `playground token list` shows it, or the whole token.
    #[arg(value_name = "ID", value_parser = clap::builder::StringValueParser::new().map(Secret::new))]
    #[arg(required_unless_present_any = ["tenant", "expired"], conflicts_with_all = ["tenant", "expired"])]
    id: Option<Secret>,

    /// Every token of this tenant.
    #[arg(long, value_parser = Tenant::parse, conflicts_with = "expired")]
    tenant: Option<Tenant>,

    /// Every token whose time is over, which opens nothing any more.
    #[arg(long)]
    expired: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    store: Store,
}

impl Revoke {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let ledger = self.store.ledger_of(&self.place)?;
        let revoked = match (self.id, self.tenant) {
            (Some(typed), _) => {
                let id = meant(&ledger, &typed).await?;
                let told = id.clone();
                store::on_full_ledger(&ledger, move |ledger| ledger.revoke(&id)).await?;
                vec![told]
            }
            (None, Some(tenant)) => store::on_full_ledger(&ledger, move |ledger| ledger.remove_tenant(&tenant)).await?,
            (None, None) => {
                let now = kit::clock::since_epoch();
                store::on_full_ledger(&ledger, move |ledger| ledger.remove_expired(now)).await?
            }
        };
        if !revoked.is_empty() {
            act::record_beside(ledger.path(), &Act::new("token revoke").credentials(revoked.iter().cloned()));
        }
        for id in &revoked {
            say::talk(&format!("revoked {id}"));
        }
        if revoked.is_empty() {
            say::talk("there was no such token; nothing was revoked");
        }
        Ok(())
    }
}

const REVOKE: &str = "\
Example:
  playground token revoke \"$(playground token list | awk '$2 == \"alice\" { print $1; exit }')\"
  playground token revoke --tenant alice
  playground token revoke --expired";
