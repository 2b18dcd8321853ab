//! The state directory: where one service keeps what must outlive it.
//!
//! ```text
//! format.json   {"version":1}; a newer one is refused
//! lock          held by the one process that serves this state
//! operator.sock the running service's door for the command line
//! admin.sock    the running service's door for monitoring
//! tokens.json   credentials          session.key   seals sessions
//! oauth-state.json  clients, invites and grants
//! tombstones.jsonl, tombstones.2.jsonl  sessions that were ended, in turns
//! last-used.json when each credential was used last, to the hour
//! audit.jsonl, audit.N.jsonl  who called what, and the files before
//! operator.jsonl  what operators changed
//! tokens/       tokens that quickstart minted, a file each
//! imports/      NAME while that tenant is being imported
//! ballast       given up where the disk is full
//! sandbox/      the sandbox worker's own
//! ```
//!
//! It is private to its owner: a directory that others can enter is refused, never repaired in silence.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kit::ballast::Ballast;
use kit::regular::NotRegular;
use rustix::fs::Access;

#[cfg(feature = "mcp-http")]
use crate::regular::NotOpened;

/// A state directory that exists, is private, and is of a format this build reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

/// The right to serve a state; it ends with the last copy of the descriptor.
#[derive(Debug)]
pub struct Lock(File);

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("{what} {path}")]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the state directory {0} is not a directory")]
    NotDirectory(PathBuf),
    #[error("the state directory {path} belongs to uid {owner}, not to {us}")]
    Foreign { path: PathBuf, owner: u32, us: u32 },
    #[error("the state directory {path} has mode {mode:04o}: others can look in; run: chmod 700 {path}")]
    Open { path: PathBuf, mode: u32 },
    #[error("{path} says `{found}`: a newer playground wrote this state, and this build reads version {VERSION}")]
    Newer { path: PathBuf, found: String },
    #[error("another playground serves the state in {0}")]
    Held(PathBuf),
    #[error("there is no state at {0}")]
    Absent(PathBuf),
    #[error("{path} is {kind} and no regular file")]
    NotRegular { path: PathBuf, kind: &'static str },
}

impl StateDir {
    /// Opens the directory, and makes it when it is not there.
    ///
    /// # Errors
    /// When it cannot be made, is not private, or is of a newer format.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let path = std::path::absolute(path).map_err(at("resolve", path))?;
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).create(parent).map_err(at("make", parent))?;
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(at("make", &path)(fault)),
            Ok(()) | Err(_) => {}
        }
        let state = Self(path);
        state.private()?;
        state.format()?;
        Ballast::of(state.path()).keep();
        Ok(state)
    }

    /// The same as far as it can be seen without changing anything. A directory that is not there counts where it could be
    /// made.
    ///
    /// # Errors
    /// As [`StateDir::open`].
    pub fn look(path: &Path) -> Result<Self, StateError> {
        let state = Self(std::path::absolute(path).map_err(at("resolve", path))?);
        if state.0.try_exists().map_err(at("look at", &state.0))? {
            state.private()?;
            state.has_format()?;
        } else {
            state.could_be_made().map_err(at("make", &state.0))?;
        }
        Ok(state)
    }

    /// One that need not be there, nor be possible: nothing is looked at, and nothing is made.
    ///
    /// # Errors
    /// When nobody knows where this process is.
    pub fn at(path: &Path) -> Result<Self, StateError> {
        std::path::absolute(path).map(Self).map_err(at("resolve", path))
    }

    /// Whether there is such a directory.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.0.exists()
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    #[must_use]
    pub fn credentials(&self) -> PathBuf {
        self.0.join("tokens.json")
    }

    #[must_use]
    pub fn oauth(&self) -> PathBuf {
        self.0.join("oauth-state.json")
    }

    /// What is kept of an ACME authority.
    #[must_use]
    pub fn acme(&self) -> PathBuf {
        self.0.join("acme.json")
    }

    #[must_use]
    pub fn session_key(&self) -> PathBuf {
        self.0.join("session.key")
    }

    /// The record of ended sessions, opened for reading and appending. It stays ours until the last copy of the
    /// descriptors is closed: by an edge, which may live a moment longer than a service that was killed.
    ///
    /// # Errors
    /// When another edge has it, or it cannot be opened.
    #[cfg(feature = "mcp-http")]
    pub fn tombstones(&self) -> Result<[File; 2], StateError> {
        let [first, second] = ["tombstones.jsonl", "tombstones.2.jsonl"].map(|name| {
            let path = self.0.join(name);
            crate::regular::appending(&path).map_err(|fault| not_opened(fault, &path))
        });
        let (first, second) = (first?, second?);
        match first.try_lock() {
            Ok(()) => Ok([first, second]),
            Err(TryLockError::WouldBlock) => Err(StateError::Held(self.0.clone())),
            Err(TryLockError::Error(fault)) => Err(at("lock", &self.0)(fault)),
        }
    }

    /// Whether an edge has served this state, which leaves such a record.
    #[must_use]
    pub fn was_served(&self) -> bool {
        self.0.join("tombstones.jsonl").exists()
    }

    /// Looks whether the record of calls could be gone on with; blocking.
    ///
    /// # Errors
    /// When something else lies in its place.
    #[cfg(feature = "mcp-http")]
    pub fn could_record(&self, folder: &crate::audit::Folder) -> Result<(), StateError> {
        folder
            .files()
            .map_err(at("list", &self.0))?
            .iter()
            .try_for_each(|path| crate::regular::open(path).map(drop).map_err(|fault| not_opened(fault, path)))
    }

    #[must_use]
    pub fn sandbox(&self) -> PathBuf {
        self.0.join("sandbox")
    }

    #[must_use]
    pub fn operator_socket(&self) -> PathBuf {
        self.0.join("operator.sock")
    }

    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.0.join("admin.sock")
    }

    /// The token that `quickstart` keeps for a tenant.
    #[must_use]
    pub fn token(&self, tenant: &kit::Tenant) -> PathBuf {
        self.0.join("tokens").join(format!("{tenant}.token"))
    }

    /// Makes the folder of those tokens, when it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_tokens(&self) -> Result<(), StateError> {
        let folder = self.0.join("tokens");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => Err(at("make", &folder)(fault)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The mark of a tenant that is being imported.
    #[must_use]
    pub fn import(&self, tenant: &kit::Tenant) -> PathBuf {
        self.0.join("imports").join(tenant.as_str())
    }

    /// Removes that mark, if it is there.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn forget_import(&self, tenant: &kit::Tenant) -> Result<(), StateError> {
        gone(&self.import(tenant))
    }

    /// Removes the token that quickstart kept for a tenant, if there is one: it opens nothing any more.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn forget_token(&self, tenant: &kit::Tenant) -> Result<(), StateError> {
        gone(&self.token(tenant))
    }

    /// Takes the right to serve this state.
    ///
    /// # Errors
    /// When another process has it.
    pub fn lock(&self) -> Result<Lock, StateError> {
        let path = self.0.join("lock");
        regular(&path)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(at("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(StateError::Held(self.0.clone())),
            Err(TryLockError::Error(fault)) => Err(at("lock", &path)(fault)),
        }
    }

    fn private(&self) -> Result<(), StateError> {
        let found = std::fs::metadata(&self.0).map_err(at("look at", &self.0))?;
        if !found.is_dir() {
            return Err(StateError::NotDirectory(self.0.clone()));
        }
        let us = rustix::process::geteuid().as_raw();
        if found.uid() != us {
            return Err(StateError::Foreign { path: self.0.clone(), owner: found.uid(), us });
        }
        let mode = found.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(StateError::Open { path: self.0.clone(), mode });
        }
        Ok(())
    }

    /// Whether the nearest folder that is there takes another.
    fn could_be_made(&self) -> io::Result<()> {
        let folder = self.0.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(Path::new("/"));
        if !std::fs::metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
    }

    fn format(&self) -> Result<(), StateError> {
        if self.has_format()? {
            return Ok(());
        }
        let path = self.0.join("format.json");
        kit::durable::replace(&path, 0o600, FORMAT.as_bytes()).map_err(at("write", &path))
    }

    /// Whether it says its format, which must be ours then.
    fn has_format(&self) -> Result<bool, StateError> {
        let path = self.0.join("format.json");
        regular(&path)?;
        let found = match std::fs::read_to_string(&path) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => String::new(),
            found => found.map_err(at("read", &path))?,
        };
        let same = |text: &str| text.split_whitespace().collect::<String>();
        // An empty file is one whose writer was cut off before its first byte.
        if found.is_empty() {
            return Ok(false);
        }
        if same(&found) == same(FORMAT) {
            return Ok(true);
        }
        Err(StateError::Newer { path, found: found.trim().chars().take(80).collect() })
    }
}

impl Lock {
    /// A copy that a child can hold too, so that the state stays taken until the child has ended as well.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn share(&self) -> io::Result<std::os::fd::OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

fn gone(path: &Path) -> Result<(), StateError> {
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(at("remove", path)(fault)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What cannot be opened at all would be waited for.
fn regular(path: &Path) -> Result<(), StateError> {
    kit::regular::look(path).map_err(|fault| match fault.downcast::<NotRegular>() {
        Ok(NotRegular(kind)) => StateError::NotRegular { path: path.to_owned(), kind },
        Err(fault) => at("look at", path)(fault),
    })
}

#[cfg(feature = "mcp-http")]
fn not_opened(fault: NotOpened, path: &Path) -> StateError {
    match fault {
        NotOpened::NotRegular(kind) => StateError::NotRegular { path: path.to_owned(), kind },
        NotOpened::NotHanded(_) | NotOpened::Io(_) => at("open", path)(fault.into()),
    }
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
    let path = path.to_owned();
    move |source| StateError::Io { what, path, source }
}

const VERSION: u32 = 1;
const FORMAT: &str = "{\"version\":1}\n";

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::{StateDir, StateError};

    #[test]
    fn a_new_state_is_private_and_opens_again() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/state");
        let first = StateDir::open(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        assert_eq!(StateDir::open(&path).expect("opens"), first);
    }

    #[test]
    fn a_state_that_others_can_enter_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        StateDir::open(&path).expect("made");
        for (mode, good) in [(0o700, true), (0o710, false), (0o701, false), (0o755, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
            assert_eq!(StateDir::open(&path).is_ok(), good, "{mode:o}");
        }
    }

    #[test]
    fn a_look_finds_what_opening_would_and_makes_nothing() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/state");
        let seen = StateDir::look(&path).expect("it could be made");
        assert!(!place.path().join("deep").exists(), "nothing was made");
        assert_eq!(StateDir::open(&path).expect("made"), seen);
        assert_eq!(StateDir::look(&path).expect("there"), seen);
        fs::write(path.join("format.json"), "").expect("written");
        StateDir::look(&path).expect("cut off in the middle of being made");
        assert_eq!(fs::read(path.join("format.json")).expect("there"), b"", "and left so");
        fs::write(path.join("format.json"), "{\"version\":2}").expect("written");
        assert!(matches!(StateDir::look(&path), Err(StateError::Newer { .. })));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("changed");
        assert!(matches!(StateDir::look(&path), Err(StateError::Open { .. })));
        fs::write(place.path().join("file"), "").expect("written");
        assert!(matches!(StateDir::look(&place.path().join("file")), Err(StateError::NotDirectory(_))));
        assert!(StateDir::look(&place.path().join("file/state")).is_err(), "a file has nothing below it");
    }

    #[test]
    fn a_state_of_a_newer_format_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        StateDir::open(&path).expect("made");
        for (text, good) in [("{ \"version\": 1 }", true), ("", true), ("{\"version\":2}", false)] {
            fs::write(path.join("format.json"), text).expect("written");
            let found = StateDir::open(&path);
            assert_eq!(found.is_ok(), good, "{found:?}");
        }
    }

    #[test]
    fn a_state_is_served_once_at_a_time() {
        let place = tempfile::tempdir().expect("a folder");
        let state = StateDir::open(&place.path().join("state")).expect("made");
        let lock = state.lock().expect("free");
        assert!(matches!(state.lock(), Err(StateError::Held(_))));
        let shared = lock.share().expect("shared");
        drop(lock);
        assert!(matches!(state.lock(), Err(StateError::Held(_))), "a child still holds it");
        drop(shared);
        state.lock().expect("free again");
    }
}
