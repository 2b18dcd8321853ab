//! Reads a file that an operator named, when it is one of bytes.
//!
//! A FIFO, a device or a socket in its place is a fault with a name and never waited for.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use kit::regular::NotRegular;
use rustix::fs::{Mode, OFlags};

use crate::manager::credential;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotOpened {
    #[error("it is {0} and no regular file")]
    NotRegular(&'static str),
    #[error(
        "it was not handed in; the unit of the service needs LoadCredential={0}:FILE, and nothing but that service has it"
    )]
    NotHanded(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<NotOpened> for io::Error {
    fn from(fault: NotOpened) -> Self {
        match fault {
            NotOpened::Io(fault) => fault,
            NotOpened::NotRegular(_) | NotOpened::NotHanded(_) => Self::other(fault),
        }
    }
}

/// Opens a file that is one of bytes. Anything else is not even opened: that alone can wait for a peer or set a device off.
pub(crate) fn open(path: &Path) -> Result<File, NotOpened> {
    if let Some(name) = credential::name(path) {
        return Err(NotOpened::NotHanded(name.to_owned()));
    }
    regular(&std::fs::metadata(path)?)?;
    // It may be another by now, which must not hold us either.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file for reading and appending, and makes it for its owner alone where it is not there.
pub(crate) fn appending(path: &Path) -> Result<File, NotOpened> {
    match std::fs::metadata(path) {
        Ok(found) => regular(&found)?,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
        Err(fault) => return Err(fault.into()),
    }
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)?);
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(found: &Metadata) -> Result<(), NotOpened> {
    NotRegular::of(found.file_type()).map_or(Ok(()), |NotRegular(kind)| Err(NotOpened::NotRegular(kind)))
}

/// The whole of a file; none when it holds more than `most` bytes.
pub(crate) fn bytes(path: &Path, most: usize) -> Result<Option<Vec<u8>>, NotOpened> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= most).then_some(bytes))
}

/// The same of a file of text.
pub(crate) fn text(path: &Path, most: usize) -> Result<Option<String>, NotOpened> {
    let text = |bytes| String::from_utf8(bytes).map_err(|_bytes| io::Error::from(io::ErrorKind::InvalidData));
    Ok(bytes(path, most)?.map(text).transpose()?)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use rustix::fs::Mode;

    use super::text;

    #[test]
    fn what_is_no_regular_file_is_named_and_never_waited_for() {
        let place = tempfile::tempdir().expect("a folder");
        let told = |path: &Path| io::Error::from(text(path, 8).expect_err("no text")).to_string();
        assert!(told(place.path()).contains("a directory"));
        assert!(told(Path::new("/dev/null")).contains("a device"));
        assert!(told(&place.path().join("none")).contains("No such file"));
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).expect("made");
        assert!(told(&fifo).contains("a FIFO"));
        let socket = place.path().join("socket");
        let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        assert!(told(&socket).contains("a socket"));
    }

    #[test]
    fn a_text_is_read_up_to_its_bound_and_behind_a_link() {
        let place = tempfile::tempdir().expect("a folder");
        let (file, link) = (place.path().join("f"), place.path().join("l"));
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        std::fs::write(&file, "12345678").expect("written");
        assert_eq!(text(&link, 8).expect("read").as_deref(), Some("12345678"));
        assert_eq!(text(&link, 7).expect("read"), None);
    }
}
