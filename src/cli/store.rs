//! The credential store that a verb means, and what the verbs do with it.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use kit::{Secret, Tenant};

use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::identity::store::{Ledger, LedgerError, Listed, Loose, NewCredential};
use crate::state::StateDir;

/// The flag that names a store outside the state directory.
#[derive(Clone, Debug, Args)]
pub(super) struct Store {
    /// Credential store [default: tokens.json in the state directory].
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_MCP_TOKENS")]
    tokens: Option<PathBuf>,
}

impl Store {
    pub(super) fn named(&self) -> Option<PathBuf> {
        // An empty variable means none, as in a shell script that leaves it unset.
        self.tokens.clone().filter(|path| !path.as_os_str().is_empty())
    }

    /// The store of a verb that needs no more of the state than that.
    pub(super) fn ledger_of(&self, place: &Place) -> Result<Ledger, Failure> {
        match self.named() {
            Some(path) => Ok(Ledger::at(path, Loose::Warn)),
            None => Ok(self.ledger(&place.open()?)),
        }
    }

    pub(super) fn ledger(&self, state: &StateDir) -> Ledger {
        match self.named() {
            Some(path) => Ledger::at(path, Loose::Warn),
            None => Ledger::at(state.credentials(), Loose::Refuse),
        }
    }
}

/// Mints a token and shows it once: alone on stdout, or in a new file whose path is told.
pub(super) async fn mint(ledger: &Ledger, wanted: NewCredential, out: Option<&Path>) -> Result<(), Failure> {
    let tenant = wanted.tenant.clone();
    let minted = on_ledger(ledger, move |ledger| ledger.mint(&wanted)).await?;
    for warning in &minted.warnings {
        say::talk(&format!("warning: {}: {warning}", ledger.path().display()));
    }
    match out {
        Some(path) => {
            write_new(path, &minted.token)?;
            say::data(&path.display().to_string());
        }
        None => say::data(minted.token.expose()),
    }
    say::talk(&format!("minted token {} for {tenant}; it cannot be shown again", minted.id));
    Ok(())
}

/// Every credential, without its secret.
pub(super) async fn listed(ledger: &Ledger) -> Result<Vec<Listed>, Failure> {
    on_ledger(ledger, Ledger::list).await
}

/// Removes a tenant's credentials; how many there were.
pub(super) async fn remove_tenant(ledger: &Ledger, tenant: &Tenant) -> Result<usize, Failure> {
    let tenant = tenant.clone();
    Ok(on_ledger(ledger, move |ledger| ledger.remove_tenant(&tenant)).await?.len())
}

/// Runs a change of the store where it may block.
pub(super) async fn on_ledger<T: Send + 'static>(
    ledger: &Ledger,
    work: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    let ledger = ledger.clone();
    let done = tokio::task::spawn_blocking(move || work(&ledger)).await.map_err(Failure::new)?;
    done.map_err(|fault| {
        let code = match &fault {
            LedgerError::NoSuchCredential(_) => Code::Missing,
            LedgerError::NotOwner { .. } => Code::NotAllowed,
            LedgerError::BadName { .. } => Code::Usage,
            LedgerError::Unreadable { .. }
            | LedgerError::Unwritable { .. }
            | LedgerError::Io { .. }
            | LedgerError::Unsure { .. }
            | LedgerError::Busy { .. }
            | LedgerError::OtherBackend { .. }
            | LedgerError::NoRandomness(_) => Code::Failed,
        };
        Failure::new(fault).code(code)
    })
}

/// Says no before anything is done for a token that could not be written.
pub(super) fn refuse_overwrite(out: Option<&Path>) -> Result<(), Failure> {
    match out {
        Some(path) if path.symlink_metadata().is_ok() => {
            Err(Failure::message(Code::Exists, format!("{} exists already", path.display()))
                .hint("name a file that does not exist yet"))
        }
        Some(_) | None => Ok(()),
    }
}

fn write_new(path: &Path, token: &Secret) -> Result<(), Failure> {
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(token.expose().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write().map_err(|fault: std::io::Error| {
        Failure::new(anyhow::Error::new(fault).context(format!("write the token to {}", path.display())))
            .hint("the token is lost; `playground token list` shows its id for `playground token revoke`")
    })
}
