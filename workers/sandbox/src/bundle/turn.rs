//! Whose turn it is to build: one process on this host at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use super::cache::{Cache, CacheError, at};
use super::fingerprint::Fingerprint;

/// The turn; it ends with this, or with the process.
#[derive(Debug)]
pub(super) struct Turn(File);

/// Who has it, in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken(pub(super) String);

impl Turn {
    /// Takes the turn if it is free.
    pub(super) fn take(cache: &Cache, wanted: Option<&Fingerprint>) -> Result<Result<Self, Taken>, CacheError> {
        let path = cache.root().join(".lock");
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path);
        let mut lock = open.map_err(at("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let said = io::read_to_string(lock).unwrap_or_default();
                let said = said.lines().next().unwrap_or_default().trim();
                let holder = if said.is_empty() { "another process" } else { said };
                return Ok(Err(Taken(holder.to_owned())));
            }
            Err(TryLockError::Error(fault)) => return Err(at("lock", &path)(fault)),
        }
        let what = wanted.map_or_else(|| "clears up".to_owned(), |wanted| format!("builds {wanted}"));
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "process {}, which {what}", std::process::id()));
        written.map_err(at("write", &path))?;
        Ok(Ok(Self(lock)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // So that the next one is not told of this one.
        let _ = self.0.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Taken, Turn};
    use crate::bundle::{Cache, Fingerprint};

    #[test]
    fn one_has_it_and_the_others_are_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("f")).unwrap();
        let fingerprint = Fingerprint::parse(&"a".repeat(64)).unwrap();
        let turn = Turn::take(&cache, Some(&fingerprint)).unwrap().unwrap();
        let Taken(holder) = Turn::take(&cache, None).unwrap().unwrap_err();
        assert_eq!(holder, format!("process {}, which builds aaaaaaaaaaaaaaaa", std::process::id()));
        drop(turn);
        assert!(Turn::take(&cache, None).unwrap().is_ok());
    }
}
