//! `playground invite revoke`: an invite that lets nobody in any more.

use clap::Args;
use clap::builder::TypedValueParser as _;
use kit::Secret;

use super::super::failure::{Code, Failure};
use super::super::oauth::{self, OAuthState};
use super::super::place::Place;
use super::super::say;
use crate::oauth::state::{InviteId, Order, invite_digest};

/// Revoke an invite by its id, or by its code. Whom it has let in stays; `playground grant revoke` ends that.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
pub(super) struct Revoke {
    /// As `playground invite list` shows it, or the whole code.
    #[arg(value_name = "ID", value_parser = clap::builder::StringValueParser::new().map(Secret::new))]
    id: Secret,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,
}

impl Revoke {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let file = self.state.file_of(&self.place)?;
        let state = oauth::read(&file).await?;
        let known = |id: &InviteId| state.invites().any(|(known, _)| known == id);
        let typed = InviteId::parse(self.id.expose().trim()).ok().filter(known);
        let by_code = || state.invite_of(&invite_digest(self.id.expose())).cloned();
        // What was typed is not repeated: it may be the code.
        let Some(id) = typed.or_else(by_code) else {
            return Err(Failure::message(Code::Missing, "there is no such invite")
                .hint("`playground invite list` shows the ids of those there are"));
        };
        oauth::order(&file, Order::RevokeInvite(id.clone())).await?;
        say::talk(&format!("revoked {id}"));
        Ok(())
    }
}

const REVOKE: &str = "\
Example:
  playground invite revoke invite-0123456789ab";
