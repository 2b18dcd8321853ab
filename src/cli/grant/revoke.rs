//! `playground grant revoke`: clients that are let in no more.

use clap::Args;
use kit::Tenant;

use super::super::failure::Failure;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use crate::oauth::state::{GrantId, Order, Ordered};

/// End a grant with all its tokens; the running service refuses them at their next request.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
pub(super) struct Revoke {
    /// As `playground grant list` shows it.
    #[arg(value_name = "ID", value_parser = GrantId::parse)]
    #[arg(required_unless_present = "tenant", conflicts_with = "tenant")]
    id: Option<GrantId>,

    /// Everything of this tenant: its grants, its codes and its invites.
    #[arg(long, value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,
}

impl Revoke {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let file = self.state.file_of(&self.place)?;
        match (self.id, self.tenant) {
            (Some(id), _) => {
                oauth::order(&file, Order::RevokeGrant(id.clone())).await?;
                say::talk(&format!("revoked {id}"));
            }
            (None, Some(tenant)) => {
                let done = oauth::order(&file, Order::RevokeTenant(tenant.clone())).await?;
                if let Ordered::Revoked(gone) = done {
                    say::talk(&format!("revoked of {tenant}: {gone}"));
                }
            }
            (None, None) => {}
        }
        Ok(())
    }
}

const REVOKE: &str = "\
Example:
  playground grant revoke grant-0123456789ab
  playground grant revoke --tenant alice";
