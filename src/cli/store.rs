//! The credential store that a verb means, and what the verbs do with it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use clap::Args;
use kit::ballast::{self, Ballast};
use kit::{Secret, Tenant};

use super::act;
use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::audit::acts::Act;
use crate::identity::store::{Ledger, LedgerError, Listed, Minted, NewCredential};
use crate::state::StateDir;
use crate::store::{ChangeError, Loose};

/// The flag that names a store outside the state directory.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Store {
    /// Credential store [default: tokens.json in the state directory].
    #[arg(long, value_name = "FILE", env = "PLAYGROUND_MCP_TOKENS")]
    tokens: Option<PathBuf>,
}

/// A store, and the state that it lies in when nobody names another place.
#[derive(Clone, Debug, Args)]
pub(super) struct StorePlace {
    #[command(flatten)]
    pub(super) place: Place,

    #[command(flatten)]
    pub(super) store: Store,
}

impl StorePlace {
    /// The store of a verb that needs no more of the state than that, and only looks.
    pub(super) fn ledger(&self) -> Result<Ledger, Failure> {
        match self.store.elsewhere(&self.place)? {
            Some(path) => Ok(Ledger::at(path, Loose::Warn)),
            None => Ok(Ledger::at(self.place.seen()?.credentials(), Loose::Refuse)),
        }
    }
}

impl Store {
    pub(super) fn named(&self) -> Option<PathBuf> {
        // An empty variable means none, as in a shell script that leaves it unset.
        self.tokens.clone().filter(|path| !path.as_os_str().is_empty())
    }

    /// The store as far as it is there: nothing is made.
    pub(super) fn ledger_seen(&self, place: &Place) -> Result<Option<Ledger>, Failure> {
        match self.elsewhere(place)? {
            Some(path) => Ok(Some(Ledger::at(path, Loose::Warn))),
            None => Ok(place.seen_if_there()?.map(|state| Ledger::at(state.credentials(), Loose::Refuse))),
        }
    }

    /// The store of a verb that needs no more of the state than that.
    pub(super) fn ledger_of(&self, place: &Place) -> Result<Ledger, Failure> {
        match self.elsewhere(place)? {
            Some(path) => Ok(Ledger::at(path, Loose::Warn)),
            None => Ok(Ledger::at(place.open()?.credentials(), Loose::Refuse)),
        }
    }

    pub(super) fn ledger(&self, place: &Place, state: &StateDir) -> Result<Ledger, Failure> {
        match self.elsewhere(place)? {
            Some(path) => Ok(Ledger::at(path, Loose::Warn)),
            None => Ok(Ledger::at(state.credentials(), Loose::Refuse)),
        }
    }

    /// By the flag, the variable or the file.
    fn elsewhere(&self, place: &Place) -> Result<Option<PathBuf>, Failure> {
        self.named().map_or_else(|| Ok(place.file()?.tokens), |named| Ok(Some(named)))
    }
}

/// Mints a token and shows it once: alone on stdout, or in a new file whose path is told.
pub(super) async fn mint(ledger: &Ledger, wanted: NewCredential, out: Option<Reserved>) -> Result<(), Failure> {
    let tenant = wanted.tenant.clone();
    let minted = on_ledger(ledger, move |ledger| ledger.mint(&wanted)).await?;
    act::record_beside(ledger.path(), &Act::new("token mint").of(&tenant).credentials([minted.id.clone()]));
    show(ledger, &minted, &tenant, out)
}

/// Shows a fresh token once.
pub(super) fn show(ledger: &Ledger, minted: &Minted, tenant: &Tenant, out: Option<Reserved>) -> Result<(), Failure> {
    for warning in &minted.warnings {
        say::talk(&format!("warning: {}: {warning}", ledger.path().display()));
    }
    match out {
        Some(reserved) => say::data(&reserved.fill(&minted.token)?.display().to_string()),
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
    let whose = tenant.clone();
    let removed = on_full_ledger(ledger, move |ledger| ledger.remove_tenant(&whose)).await?;
    let count = removed.len();
    if count > 0 {
        act::record_beside(ledger.path(), &Act::new("token revoke").of(tenant).credentials(removed));
    }
    Ok(count)
}

/// The same for what takes something away, which must be done on a full disk too.
pub(super) async fn on_full_ledger<T: Send + 'static>(
    ledger: &Ledger,
    work: impl Fn(&Ledger) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    let is_full = |fault: &LedgerError| matches!(fault, LedgerError::Store(ChangeError::Io { source, .. } | ChangeError::Unsure { source, .. }) if ballast::is_full(source));
    on_ledger(ledger, move |ledger| match ledger.path().parent() {
        Some(folder) => Ballast::of(folder).write(|| work(ledger), is_full),
        None => work(ledger),
    })
    .await
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
            LedgerError::Store(ChangeError::NotOwner { .. }) => Code::NotAllowed,
            LedgerError::BadName { .. } | LedgerError::Past => Code::Usage,
            LedgerError::Replaced { .. } => Code::Exists,
            LedgerError::Store(_) | LedgerError::OtherBackend { .. } | LedgerError::Clear => Code::Failed,
        };
        let hint = match &fault {
            LedgerError::Clear => Some(
                "`playground token upgrade` replaces them with hashes, and each goes on working; nothing was changed",
            ),
            LedgerError::Replaced { .. } => Some("rotate the one that replaced it, or revoke this one"),
            LedgerError::Store(_)
            | LedgerError::NoSuchCredential(_)
            | LedgerError::OtherBackend { .. }
            | LedgerError::BadName { .. }
            | LedgerError::Past => None,
        };
        let failure = Failure::new(fault).code(code);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}

/// A new private file that is there before its token is, so that no token is made for a place that cannot take it.
/// Unless it is filled it goes again.
pub(super) struct Reserved {
    path: PathBuf,
    file: File,
    filled: bool,
}

impl Reserved {
    pub(super) fn new(path: PathBuf) -> Result<Self, Failure> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => Ok(Self { path, file, filled: false }),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::message(Code::Exists, format!("{} exists already", path.display()))
                    .hint("name a file that does not exist yet"))
            }
            Err(fault) => Err(Failure::new(anyhow::Error::new(fault).context(format!("make {}", path.display())))
                .hint("nothing was made; name a file in a directory that you may write to")),
        }
    }

    pub(super) fn fill(mut self, token: &Secret) -> Result<PathBuf, Failure> {
        let written = self
            .file
            .write_all(token.expose().as_bytes())
            .and_then(|()| self.file.write_all(b"\n"))
            .and_then(|()| self.file.sync_all());
        written.map_err(|fault| {
            Failure::new(anyhow::Error::new(fault).context(format!("write the token to {}", self.path.display())))
                .hint("the token is lost; `playground token list` shows its id for `playground token revoke`")
        })?;
        self.filled = true;
        Ok(self.path.clone())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.filled {
            // An empty file in the way is all that is left where it cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
