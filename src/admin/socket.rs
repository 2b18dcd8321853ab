//! Listening unix sockets that have a path.
//!
//! Only their owner may connect: the mode is 0600 before the first connection can be. A socket that a dead service left
//! is replaced, and one that a living service answers at is never taken from it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

/// A socket that listens, and the path that leads to it until it is given up.
#[derive(Debug)]
pub struct Listening {
    pub listener: OwnedFd,
    pub place: Place,
}

/// The path of a socket of ours.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// The file that we made. As long as it is held, no other file gets its number.
    made: OwnedFd,
}

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("a running service answers at {}; stop it, or name another path", .0.display())]
    InUse(PathBuf),
    #[error("{} is there and is no socket; name another path, or remove it", .0.display())]
    NoSocket(PathBuf),
    #[error("the folder of {} is not there; make it, or name another path", .0.display())]
    NoFolder(PathBuf),
    #[error("{what} {}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Makes the socket, in place of one that a dead service left; blocking.
///
/// # Errors
/// When something else is in its place, or the folder does not allow it.
pub fn listen_at(path: &Path) -> Result<Listening, SocketError> {
    could_listen(path)?;
    if answers(path)? {
        return Err(SocketError::InUse(path.to_owned()));
    }
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(at("replace", path)(fault)),
        Ok(()) | Err(_) => {}
    }
    let made = || {
        let listener = stream()?;
        short(path, |path| Ok(bind(&listener, &SocketAddrUnix::new(path)?)?))?;
        // Before `listen` nobody can connect, whatever the mode is until here.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        listen(&listener, BACKLOG)?;
        let made = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        Ok((listener, made))
    };
    let (listener, made) = made().map_err(at("listen on", path))?;
    Ok(Listening { listener, place: Place { path: path.to_owned(), made } })
}

/// Whether nothing but a socket, if anything, is in its place; blocking. It listens on nothing.
///
/// # Errors
/// With what stands in the way.
pub fn could_listen(path: &Path) -> Result<(), SocketError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(SocketError::NoFolder(path.to_owned()));
    }
    match std::fs::symlink_metadata(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(at("look at", path)(fault)),
        Ok(found) if found.file_type().is_socket() => Ok(()),
        Ok(_) => Err(SocketError::NoSocket(path.to_owned())),
    }
}

/// Whether anybody accepts connections there.
fn answers(path: &Path) -> Result<bool, SocketError> {
    let caller = stream().map_err(at("ask at", path))?;
    let reached = short(path, |path| Ok(connect(&caller, &SocketAddrUnix::new(path)?)));
    match reached.map_err(at("ask at", path))? {
        Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(false),
        // Its backlog is full, so it has one.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(fault) => Err(at("ask at", path)(fault.into())),
    }
}

impl Place {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the path, if it still leads to the socket that was made here.
    pub fn give_up(&self) {
        let number = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let (made, found) = (rustix::fs::fstat(&self.made), rustix::fs::lstat(&self.path));
        if found.is_ok() && made.map(number) == found.map(number) {
            // What cannot be removed is told from a living socket by nobody listening.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Reaches a socket whose path may be longer than a socket's name can be, through its directory's descriptor.
pub(super) fn short<T>(path: &Path, reach: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MOST_NAME_BYTES {
        return reach(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return reach(path) };
    let folder = std::fs::File::open(folder)?;
    match crate::sys::through(&folder) {
        Some(folder) => reach(&folder.join(name)),
        None => reach(path),
    }
}

fn stream() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.to_owned();
    move |source| SocketError::Io { what, path, source }
}

/// A socket's name has 108 bytes on Linux and 104 elsewhere, with one for its end.
const MOST_NAME_BYTES: usize = 100;

/// Callers that wait while others are answered; each is answered at once.
const BACKLOG: i32 = 64;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    use super::{SocketError, could_listen, listen_at};

    #[test]
    fn a_dead_services_socket_is_replaced_and_a_living_ones_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        for folder in [place.path().to_owned(), place.path().join("x".repeat(120))] {
            std::fs::create_dir_all(&folder).expect("made");
            let path = folder.join("admin.sock");
            let living = listen_at(&path).expect("nothing is there");
            assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600, "for its owner alone");
            assert!(matches!(listen_at(&path), Err(SocketError::InUse(_))), "it answers");
            drop(living.listener);
            assert!(std::fs::metadata(&path).expect("left").file_type().is_socket());
            let next = listen_at(&path).expect("nobody answers");
            living.place.give_up();
            assert!(path.exists(), "the next one's is not the first one's to remove");
            next.place.give_up();
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("file");
        std::fs::write(&path, "precious").expect("written");
        assert!(matches!(listen_at(&path), Err(SocketError::NoSocket(_))));
        assert_eq!(std::fs::read(&path).expect("there"), b"precious");
        let nowhere = place.path().join("none/admin.sock");
        assert!(matches!(could_listen(&nowhere), Err(SocketError::NoFolder(_))));
        could_listen(&place.path().join("admin.sock")).expect("a free place");
    }
}
