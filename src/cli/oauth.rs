//! The OAuth state that a verb means, and what the verbs do with it.

use std::path::PathBuf;

use clap::Args;
use kit::Tenant;
use kit::ballast::{self, Ballast};

use super::act;
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::audit::acts::Act;
use crate::oauth::keeper::File;
use crate::oauth::sendable;
use crate::oauth::state::{Full, Gone, Order, Ordered, Redirect, Refused};
use crate::state::StateDir;
use crate::store::{ChangeError, Loose};

/// The flag that names an OAuth state outside the state directory.
#[derive(Clone, Debug, Args)]
pub(super) struct OAuthState {
    /// What logins leave behind: clients, invites and grants [default: oauth-state.json in the state directory].
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_MCP_OAUTH_STATE")]
    oauth_state: Option<PathBuf>,
}

/// Such a state, and the one that it lies in when nobody names another place.
#[derive(Clone, Debug, Args)]
pub(super) struct OAuthPlace {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    state: OAuthState,
}

impl OAuthPlace {
    /// The file of a verb that needs no more of the state than that, and only looks.
    pub(super) fn file(&self) -> Result<File, Failure> {
        match self.state.elsewhere(&self.place)? {
            Some(path) => Ok(File::at(path, Loose::Warn)),
            None => Ok(File::at(self.place.seen()?.oauth(), Loose::Refuse)),
        }
    }
}

impl OAuthState {
    pub(super) fn named(&self) -> Option<PathBuf> {
        // An empty variable means none, as in a shell script that leaves it unset.
        self.oauth_state.clone().filter(|path| !path.as_os_str().is_empty())
    }

    /// The file of a verb that needs no more of the state than that.
    pub(super) fn file_of(&self, place: &Place) -> Result<File, Failure> {
        match self.elsewhere(place)? {
            Some(path) => Ok(File::at(path, Loose::Warn)),
            None => Ok(File::at(place.open()?.oauth(), Loose::Refuse)),
        }
    }

    pub(super) fn file(&self, place: &Place, state: &StateDir) -> Result<File, Failure> {
        match self.elsewhere(place)? {
            Some(path) => Ok(File::at(path, Loose::Warn)),
            None => Ok(File::at(state.oauth(), Loose::Refuse)),
        }
    }

    /// By the flag, the variable or the file.
    fn elsewhere(&self, place: &Place) -> Result<Option<PathBuf>, Failure> {
        self.named().map_or_else(|| Ok(place.file()?.oauth.state), |named| Ok(Some(named)))
    }
}

/// An address that the edge would send a browser to.
pub(super) fn destination(text: &str) -> Result<Redirect, String> {
    sendable(text).map_err(|fault| fault.to_string())?;
    Redirect::parse(text).map_err(|fault| fault.to_string())
}

/// What there is of a tenant.
pub(super) async fn of_tenant(file: &File, tenant: &Tenant) -> Result<Gone, Failure> {
    Ok(read(file).await?.of_tenant(tenant))
}

/// Ends everything of a tenant: invites, codes and grants. Where there is no file there is nothing to end.
pub(super) async fn remove_tenant(file: &File, tenant: &Tenant) -> Result<Gone, Failure> {
    if !file.path().try_exists().unwrap_or(true) {
        return Ok(Gone::default());
    }
    match order(file, Order::RevokeTenant(tenant.clone())).await? {
        Ordered::Revoked(gone) => Ok(gone),
        Ordered::Invited { .. } | Ordered::Entered => Ok(Gone::default()),
    }
}

/// Does what an operator asks for, where it may block. What takes something away is done on a full disk too.
pub(super) async fn order(file: &File, order: Order) -> Result<Ordered, Failure> {
    let (file, asked) = (file.clone(), order.clone());
    let path = file.path().to_owned();
    let work = move || {
        let once = || file.order(order.clone());
        let is_full = |fault: &ChangeError| matches!(fault, ChangeError::Io { source, .. } | ChangeError::Unsure { source, .. } if ballast::is_full(source));
        match (&order, file.path().parent()) {
            (
                Order::RevokeInvite(_) | Order::RevokeGrant(_) | Order::RevokeTenant(_) | Order::RemoveClient(_),
                Some(folder),
            ) => Ballast::of(folder).write(once, is_full),
            (Order::Invite(_) | Order::EnterClient(_), _) | (_, None) => once(),
        }
    };
    let done = tokio::task::spawn_blocking(work).await.map_err(Failure::new)?;
    let done = done.map_err(unchanged)??;
    if let Some(act) = recorded(&asked, &done) {
        act::record_beside(&path, &act);
    }
    Ok(done)
}

/// What is put on record; a revocation of nothing is none.
fn recorded(order: &Order, done: &Ordered) -> Option<Act> {
    if *done == Ordered::Revoked(Gone::default()) && !matches!(order, Order::RemoveClient(_)) {
        return None;
    }
    Some(match (order, done) {
        (Order::Invite(invite), _) => Act::new("invite create").of(&invite.tenant).with([invite.id.to_string()]),
        (Order::RevokeInvite(id), _) => Act::new("invite revoke").with([id.to_string()]),
        (Order::RevokeGrant(id), _) => Act::new("grant revoke").with([id.to_string()]),
        (Order::RevokeTenant(tenant), Ordered::Revoked(gone)) => {
            Act::new("grant revoke").of(tenant).with([gone.to_string()])
        }
        (Order::RevokeTenant(tenant), Ordered::Invited { .. } | Ordered::Entered) => {
            Act::new("grant revoke").of(tenant)
        }
        (Order::EnterClient(client), _) => Act::new("client add").with([client.id.to_string()]),
        (Order::RemoveClient(id), _) => Act::new("client remove").with([id.to_string()]),
    })
}

/// The state, with what an operator should know about it said.
pub(super) async fn read(file: &File) -> Result<crate::oauth::state::State, Failure> {
    let file = file.clone();
    let path = file.path().to_owned();
    let read = tokio::task::spawn_blocking(move || file.read()).await.map_err(Failure::new)?;
    let (state, warnings) = read.map_err(unchanged)?;
    for warning in warnings {
        say::talk(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(state)
}

/// A file that a verb wanted to change is as it was, unless the fault says otherwise.
pub(super) fn unchanged(fault: ChangeError) -> Failure {
    let code = match &fault {
        ChangeError::NotOwner { .. } => Code::NotAllowed,
        ChangeError::Unreadable { .. }
        | ChangeError::Unwritable { .. }
        | ChangeError::Io { .. }
        | ChangeError::Unsure { .. }
        | ChangeError::Busy { .. }
        | ChangeError::NoRandomness(_) => Code::Failed,
    };
    Failure::new(fault).code(code)
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let (code, hint) = match &refused {
            Refused::NoInvite(_) => (Code::Missing, Some("`playground invite list` shows those there are")),
            Refused::NoGrant(_) => (Code::Missing, Some("`playground grant list` shows those there are")),
            Refused::NoClient(_) => (Code::Missing, Some("`playground client list` shows those there are")),
            Refused::Full(Full::Clients { .. }) => {
                (Code::Failed, Some("remove what nobody needs: `playground client list`"))
            }
            Refused::Full(_) => (Code::Failed, Some("revoke what nobody needs: `playground invite list`")),
            Refused::Redirects { .. } | Refused::Past | Refused::NoUses | Refused::Far { .. } => (Code::Usage, None),
            Refused::Taken => (Code::Failed, None),
        };
        let failure = Self::new(refused).code(code);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
