//! The right to run, make or remove a tenant, which one process has at a time.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};

use super::{Home, open_lock, step};
use crate::backend::BackendError;

/// That this process alone runs a tenant.
#[derive(Debug)]
pub(in crate::backend::linux) struct Hold(File);

impl Home {
    /// Who runs this tenant now, if somebody does.
    pub(in crate::backend::linux) fn holder(&self) -> Result<Option<String>, BackendError> {
        let path = self.folder.join("lock");
        let naming = || step(format!("look at {}", path.display()));
        let deadline = kit::clock::now() + LOOKING;
        loop {
            let mut lock = match kit::regular::look(&path).and_then(|()| File::open(&path)) {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => other.map_err(naming())?,
            };
            // Shared, so that those who look do not see each other.
            match flock(&lock, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(None),
                // Somebody may have it for an instant only, to sweep.
                Err(rustix::io::Errno::WOULDBLOCK) if kit::clock::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let mut holder = String::new();
                    let _ = lock.read_to_string(&mut holder);
                    return Ok(Some(format!("process {}", holder.trim())));
                }
                Err(fault) => return Err(naming()(fault.into())),
            }
        }
    }

    /// Makes sure that no other process runs this tenant, for as long as the result lives.
    pub(in crate::backend::linux) fn hold(&self) -> Result<Hold, BackendError> {
        let path = self.folder.join("lock");
        let naming = || step(format!("lock {}", path.display()));
        let began = kit::clock::now();
        let (looked, deadline) = (began + LOOKING, began + FADING);
        loop {
            let opened = self.ballast.write(|| open_lock(&path), kit::ballast::is_full);
            let mut lock = match opened {
                Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                    return Err(BackendError::NotProvisioned(self.tenant.clone()));
                }
                other => other.map_err(naming())?,
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let mut holder = String::new();
                    let _ = lock.read_to_string(&mut holder);
                    let waited = kit::clock::now();
                    if waited < looked || (is_gone(holder.trim()) && waited < deadline) {
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    let holder = format!("process {}", holder.trim());
                    return Err(BackendError::Held { tenant: self.tenant.clone(), holder });
                }
                Err(fault) => return Err(naming()(fault.into())),
            }
            // Whoever held it before may have removed the folder, and another may have made it anew.
            if !is_at(&lock, &path).map_err(naming())? {
                continue;
            }
            // For people only: a disk without room for it must not keep a tenant from being removed.
            let _ =
                lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| writeln!(lock, "{}", std::process::id()));
            return Ok(Hold(lock));
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Closing would do, were there not for an instant copies of the descriptor in processes that are being started.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Whether a holder is dead: then the lock is one that a process which it was just starting has not closed yet.
fn is_gone(holder: &str) -> bool {
    let holder = holder.parse().ok().and_then(Pid::from_raw);
    holder.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match path.symlink_metadata() {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Longer than it takes somebody to look who holds a tenant.
const LOOKING: Duration = Duration::from_millis(50);

/// A process that is born closes what it inherited at once, on a busy host a little later.
const FADING: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::fs;

    use kit::Tenant;
    use rustix::fs::{FlockOperation, flock};

    use super::super::{Layout, open_lock};
    use crate::backend::BackendError;

    #[test]
    fn a_lock_that_outlives_its_holder_for_a_moment_is_waited_for_and_a_living_ones_is_not() {
        let state = tempfile::tempdir().unwrap();
        let home = Layout::open(state.path()).unwrap().tenant(&Tenant::parse_new("me").unwrap()).unwrap();
        assert!(matches!(home.hold(), Err(BackendError::NotProvisioned(_))), "in no folder there is nothing to hold");
        fs::create_dir(home.folder()).unwrap();
        let path = home.folder().join("lock");
        let copy = open_lock(&path).unwrap();
        flock(&copy, FlockOperation::LockExclusive).unwrap();
        fs::write(&path, format!("{}\n", std::process::id())).unwrap();
        assert!(matches!(home.hold(), Err(BackendError::Held { .. })));
        assert_eq!(home.holder().unwrap(), Some(format!("process {}", std::process::id())));
        // No process has the highest number that there can be.
        fs::write(&path, format!("{}\n", i32::MAX)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| home.hold().map(drop).map_err(|fault| fault.to_string()));
            drop(copy);
            assert_eq!(waiting.join().unwrap(), Ok(()));
            assert_eq!(home.holder().unwrap(), None);
        });
    }
}
