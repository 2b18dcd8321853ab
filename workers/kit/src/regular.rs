//! What lies where a file of bytes should: to open a FIFO may wait for ever, and to read a device may have no end.

use std::fs::FileType;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Something else lies in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {0} and no regular file")]
pub struct NotRegular(pub &'static str);

impl NotRegular {
    /// Of what is none.
    #[must_use]
    pub fn of(kind: FileType) -> Option<Self> {
        match kind {
            kind if kind.is_file() => None,
            kind if kind.is_dir() => Some(Self("a directory")),
            kind if kind.is_fifo() => Some(Self("a FIFO")),
            kind if kind.is_socket() => Some(Self("a socket")),
            kind if kind.is_char_device() || kind.is_block_device() => Some(Self("a device")),
            _ => Some(Self("something else")),
        }
    }
}

/// Looks before a file in a folder of ours is opened, also behind a link; blocking. One that is not there is good.
///
/// # Errors
/// [`NotRegular`] within an error of no other kind, or when the place cannot be looked at.
pub fn look(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) => NotRegular::of(found.file_type()).map_or(Ok(()), |fault| Err(io::Error::other(fault))),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::look;

    #[test]
    fn only_what_is_a_file_or_may_become_one_is_good() {
        let place = tempfile::tempdir().unwrap();
        let (file, link) = (place.path().join("file"), place.path().join("link"));
        assert!(look(&file).is_ok(), "it may become one");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::fs::write(&file, "text").unwrap();
        assert!(look(&file).is_ok() && look(&link).is_ok());
        let socket = place.path().join("socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in [(place.path(), "a directory"), (&socket, "a socket"), ("/dev/zero".as_ref(), "a device")] {
            assert_eq!(look(path).unwrap_err().to_string(), format!("it is {kind} and no regular file"));
        }
    }
}
