//! The names of handles.
//!
//! A tenant's session id is the same each time and in each run of the worker, so that a client which outlives a restart
//! goes on with the one it has. It is made from a key in the worker's folder, so that it cannot be worked out from the
//! tenant's name; what protects a tenant, though, is that ownership is checked.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::Path;

use kit::Tenant;

use crate::random;

/// Makes session ids.
#[derive(Clone)]
pub(crate) struct Names {
    key: [u8; 16],
}

/// A tenant's session id, as a client holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionId(String);

impl Names {
    /// Reads the key from `folder`, or makes one there. Blocks.
    ///
    /// # Errors
    /// When the file can be neither read nor written.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join("sessions.key");
        match read(&path) {
            Ok(key) => Ok(Self { key }),
            Err(fault) if matches!(fault.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                let key = random::bits().to_ne_bytes();
                kit::durable::replace(&path, 0o600, &key)?;
                Ok(Self { key })
            }
            Err(fault) => Err(fault),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Self {
        Self { key: random::bits().to_ne_bytes() }
    }

    pub(crate) fn session(&self, tenant: &Tenant) -> SessionId {
        // A later compiler's hash may give other ids; then clients open anew, as after an hour without use.
        let [high, low] = [0_u8, 1].map(|half| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&self.key);
            hasher.write_u8(half);
            hasher.write(tenant.as_str().as_bytes());
            hasher.finish()
        });
        SessionId(format!("s_{high:016x}{low:016x}"))
    }
}

impl SessionId {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0 == text
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn read(path: &Path) -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    fs::File::open(path)?.read_exact(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use kit::Tenant;

    use super::Names;

    #[test]
    fn a_tenant_has_the_same_session_in_the_next_run_and_no_other_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (Tenant::parse("a").unwrap(), Tenant::parse("b").unwrap());
        let first = Names::open(folder.path()).unwrap();
        let second = Names::open(folder.path()).unwrap();
        assert_eq!(first.session(&a), second.session(&a));
        assert_ne!(first.session(&a), first.session(&b));
        assert_ne!(first.session(&a), Names::for_test().session(&a));
    }

    #[test]
    fn a_key_that_was_torn_by_a_crash_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sessions.key"), b"torn").unwrap();
        assert!(Names::open(folder.path()).is_ok());
    }
}
