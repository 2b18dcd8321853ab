//! A small file that is given up when the disk is full, so that a record can still be written.
//!
//! To take a credential back, or to remove a sandbox, something small has to be written first. On a full disk that fails
//! just when it is needed to make room. So a folder keeps a file of no use; what is written through [`Ballast::write`]
//! gets its room and is tried once more. The file comes back with [`Ballast::keep`] when there is room again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The ballast of one folder. Any number of processes may share it.
#[derive(Clone, Debug)]
pub struct Ballast(PathBuf);

impl Ballast {
    /// The ballast of a folder, there or not.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    /// Makes the file if it is not there. That there is no room for it is no fault: it is then made another time.
    pub fn keep(&self) {
        match self.0.symlink_metadata() {
            Ok(found) if found.is_file() && found.len() >= BYTES => return,
            // What is no file gives no room, and might be waited for.
            Ok(found) if !found.is_file() && fs::remove_file(&self.0).is_err() => return,
            Ok(_) | Err(_) => {}
        }
        if self.fill().is_err() {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// Does what writes a little. Where the disk is full, the ballast makes room and it is done again, once.
    ///
    /// # Errors
    /// What the work says, also when it is done again.
    pub fn write<T, E>(&self, mut work: impl FnMut() -> Result<T, E>, is_full: impl Fn(&E) -> bool) -> Result<T, E> {
        match work() {
            // Another process may have given it up at the same time: then there is room as well.
            Err(fault) if is_full(&fault) && (fs::remove_file(&self.0).is_ok() || !self.0.exists()) => work(),
            other => other,
        }
    }

    fn fill(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file: File = options.open(&self.0)?;
        // Not zeroes: some file systems keep those for nothing, and then nothing would be given back.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block = Vec::with_capacity(4096);
        for _ in 0..BYTES / 4096 {
            block.clear();
            for _ in 0..512 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                block.extend_from_slice(&state.to_le_bytes());
            }
            file.write_all(&block)?;
        }
        file.sync_all()
    }
}

/// Whether a fault says that there is no room.
#[must_use]
pub fn is_full(fault: &io::Error) -> bool {
    matches!(fault.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The file's name in its folder.
const NAME: &str = "ballast";

/// Room for a record and its draft, the folder's own growth, and what a file system takes for itself on the way.
const BYTES: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Ballast, is_full};

    fn full() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    #[test]
    fn work_that_finds_the_disk_full_is_done_again_without_the_ballast() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::of(folder.path());
        ballast.keep();
        let file = folder.path().join("ballast");
        assert_eq!(file.metadata().unwrap().len(), 256 << 10);
        let done = ballast.write(|| if file.exists() { Err(full()) } else { Ok("done") }, is_full);
        assert_eq!(done.unwrap(), "done");
        ballast.keep();
        assert!(file.exists());
    }

    #[test]
    fn other_faults_and_good_ends_leave_the_ballast_alone() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::of(folder.path());
        ballast.keep();
        assert!(ballast.write(|| Err::<(), _>(io::Error::from(io::ErrorKind::NotFound)), is_full).is_err());
        assert!(ballast.write(|| Ok::<_, io::Error>(()), is_full).is_ok());
        assert!(folder.path().join("ballast").exists());
    }

    #[test]
    fn a_disk_that_stays_full_is_said_after_the_second_time() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::of(folder.path());
        ballast.keep();
        let mut times = 0;
        let said = ballast.write(
            || {
                times += 1;
                Err::<(), _>(full())
            },
            is_full,
        );
        assert!(is_full(&said.unwrap_err()));
        assert_eq!(times, 2);
    }
}
