//! The right to run, make or remove a tenant, which one process has at a time.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::{Home, open_lock, step};
use crate::backend::BackendError;

/// That this process alone runs a tenant.
#[derive(Debug)]
pub(in crate::backend::linux) struct Hold(File);

impl Home {
    /// Makes sure that no other process runs this tenant, for as long as the result lives.
    pub(in crate::backend::linux) fn hold(&self) -> Result<Hold, BackendError> {
        let path = self.folder.join("lock");
        let naming = || step(format!("lock {}", path.display()));
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

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match path.symlink_metadata() {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}
