//! The files of this host that are made for machines.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::folder;

/// What is done with files; `why` is the reason, as a phrase. What is removed may be gone already.
pub(super) trait Disk: Send + Sync {
    /// A folder of this user's own, that nobody else can write to; made where it is not there.
    fn own_folder(&self, why: &str, path: &Path) -> io::Result<()>;
    /// The whole content of a file, durable.
    fn replace(&self, why: &str, path: &Path, mode: u32, content: &[u8]) -> io::Result<()>;
    /// A second name of the very file; another file that has it is in the way.
    fn link(&self, why: &str, file: &Path, place: &Path) -> io::Result<()>;
    fn remove_file(&self, why: &str, path: &Path) -> io::Result<()>;
    /// With all that is in it; whether it was there.
    fn remove_folder(&self, why: &str, path: &Path) -> io::Result<bool>;
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// What is in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Where a regular file really lies.
    fn regular(&self, path: &Path) -> io::Result<PathBuf>;
}

/// This host's.
pub(super) struct Real;

impl Disk for Real {
    fn own_folder(&self, _: &str, path: &Path) -> io::Result<()> {
        folder::own(path)
    }

    fn replace(&self, _: &str, path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
        kit::durable::replace(path, mode, content)
    }

    fn link(&self, _: &str, file: &Path, place: &Path) -> io::Result<()> {
        match fs::hard_link(file, place) {
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {
                let open = |path: &Path| OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
                let id = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
                if id(&open(file)?)? == id(&open(place)?)? {
                    Ok(())
                } else {
                    Err(io::Error::other(format!("{} is another file; remove it", place.display())))
                }
            }
            Err(fault) if fault.kind() == io::ErrorKind::CrossesDevices => Err(io::Error::other(format!(
                "{} lies on another file system: choose --state-root on that of the pile",
                place.display()
            ))),
            done => done,
        }
    }

    fn remove_file(&self, _: &str, path: &Path) -> io::Result<()> {
        was_there(fs::remove_file(path)).map(drop)
    }

    fn remove_folder(&self, _: &str, path: &Path) -> io::Result<bool> {
        was_there(fs::remove_dir_all(path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn regular(&self, path: &Path) -> io::Result<PathBuf> {
        let path = path.canonicalize()?;
        if fs::metadata(&path)?.is_file() { Ok(path) } else { Err(io::Error::other("it is no regular file")) }
    }
}

fn was_there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}
