//! `playground client remove`: a client that is known no more.

use clap::Args;

use super::super::failure::Failure;
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use crate::oauth::state::{ClientId, Order, Ordered};

/// Remove a client, with its logins and the invites that were for it alone; they are refused at their next request.
///
/// Where clients may register themselves it can come again under another id.
#[derive(Debug, Args)]
#[command(after_help = REMOVE)]
pub(super) struct Remove {
    /// As `playground client list` shows it.
    #[arg(value_name = "ID", value_parser = ClientId::parse)]
    id: ClientId,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,
}

impl Remove {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let file = self.state.file_of(&self.place)?;
        if let Ordered::Revoked(gone) = oauth::order(&file, Order::RemoveClient(self.id.clone())).await? {
            say::talk(&format!("removed {}, and of what it was given: {gone}", self.id));
        }
        Ok(())
    }
}

const REMOVE: &str = "\
Example:
  playground client remove client-0123456789abcdef0123456789abcdef";
