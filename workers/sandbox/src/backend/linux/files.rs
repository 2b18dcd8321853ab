//! The service's half of the file broker: reads what was opened inside, hands in what is to be written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use super::live::{Answer, Live};
use super::wire::{FileFault, Kind, LONGEST_PATH, Order};
use crate::backend::{FileError, GuestPath, Written};

pub(super) async fn read(live: &Live, path: &GuestPath, most: u64) -> Result<Vec<u8>, FileError> {
    let id = live.number();
    let order = Order::Read { id, cwd: folder(path), path: path.path.clone() };
    let name = path.path.clone();
    match ask(live, id, &order, None, &name).await? {
        Answer::Opened(file) => blocking(&name.clone(), move || read_whole(File::from(file), name, most)).await?,
        Answer::FileFault(fault) => Err(explain(fault, name)),
        Answer::Started(_) | Answer::NotStarted(..) | Answer::Written { .. } | Answer::Made | Answer::SelfTested(_) => {
            Err(unexpected(name))
        }
    }
}

pub(super) async fn write(live: &Live, path: &GuestPath, content: Vec<u8>) -> Result<Written, FileError> {
    let id = live.number();
    let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
    let order = Order::Write { id, cwd: folder(path), path: path.path.clone(), full: is_full(live, bytes).await };
    let written = hand_in(live, id, &order, path, content).await?;
    if written.bytes == bytes {
        return Ok(written);
    }
    let fault = format!("only {} of {bytes} bytes are in the file", written.bytes);
    Err(other(&path.path, io::Error::other(fault)))
}

pub(super) async fn append(live: &Live, path: &GuestPath, content: Vec<u8>) -> Result<Written, FileError> {
    let id = live.number();
    let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
    let order = Order::Append { id, cwd: folder(path), path: path.path.clone(), full: is_full(live, bytes).await };
    let written = hand_in(live, id, &order, path, content).await?;
    if written.bytes == bytes {
        return Ok(written);
    }
    Err(FileError::Partial { path: path.path.clone(), written: written.bytes, bytes })
}

pub(super) async fn make_parents(live: &Live, path: &GuestPath) -> Result<(), FileError> {
    let id = live.number();
    let order = Order::Parents { id, cwd: folder(path), path: path.path.clone() };
    let name = path.path.clone();
    match ask(live, id, &order, None, &name).await? {
        Answer::Made => Ok(()),
        Answer::FileFault(fault) => Err(explain(fault, name)),
        Answer::Started(_)
        | Answer::NotStarted(..)
        | Answer::Opened(_)
        | Answer::Written { .. }
        | Answer::SelfTested(_) => Err(unexpected(name)),
    }
}

/// Gives an order that comes with content.
async fn hand_in(
    live: &Live,
    id: u64,
    order: &Order,
    path: &GuestPath,
    content: Vec<u8>,
) -> Result<Written, FileError> {
    let name = path.path.clone();
    let content = blocking(&name, move || memory_file(&content)).await?.map_err(|source| other(&name, source))?;
    match ask(live, id, order, Some(&content), &name).await? {
        Answer::Written { bytes, created, size } => {
            if let Some(quota) = &live.quota {
                quota.ask();
            }
            Ok(Written { bytes, created, size })
        }
        Answer::FileFault(fault) => Err(explain(fault, name)),
        Answer::Started(_) | Answer::NotStarted(..) | Answer::Opened(_) | Answer::Made | Answer::SelfTested(_) => {
            Err(unexpected(name))
        }
    }
}

/// Whether so many bytes are too many for home and workspace; whether they are to lie there, only the inside can tell.
async fn is_full(live: &Live, bytes: u64) -> bool {
    match &live.quota {
        Some(quota) => !quota.has_room(bytes).await,
        None => false,
    }
}

/// The folder to start at; one that no path can name is sent as one that is not there.
fn folder(path: &GuestPath) -> Option<String> {
    path.cwd.as_ref().map(|cwd| if cwd.len() > LONGEST_PATH { String::new() } else { cwd.clone() })
}

/// A file without a name that holds `content`.
pub(super) fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create("content", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(descriptor);
    file.write_all(content)?;
    Ok(file.into())
}

async fn ask(live: &Live, id: u64, order: &Order, content: Option<&OwnedFd>, name: &str) -> Result<Answer, FileError> {
    if name.contains('\0') {
        return Err(other(name, io::Error::new(io::ErrorKind::InvalidInput, "a path cannot hold a zero byte")));
    }
    if name.len() > LONGEST_PATH {
        return Err(other(name, io::Error::from_raw_os_error(libc::ENAMETOOLONG)));
    }
    let descriptors: Vec<_> = content.map(AsFd::as_fd).into_iter().collect();
    match tokio::time::timeout(DEADLINE, live.ask(id, order, &descriptors)).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => {
            // Nobody waits for it any more, so it should not do its work at some later time either.
            let _ = live.order(&Order::Kill { id }, &[]).await;
            Err(FileError::Lost(name.to_owned()))
        }
    }
}

/// A file of the kernel's own may keep a reader waiting, and then only the waiting can be given up.
async fn blocking<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<T, FileError> {
    match tokio::time::timeout(DEADLINE, tokio::task::spawn_blocking(work)).await {
        Ok(done) => done.map_err(|fault| other(name, io::Error::other(fault))),
        Err(_elapsed) => Err(other(name, io::ErrorKind::TimedOut.into())),
    }
}

fn read_whole(file: File, path: String, most: u64) -> Result<Vec<u8>, FileError> {
    let size = file.metadata().map_err(|source| other(&path, source))?.len();
    if size > most {
        return Err(FileError::TooLarge { path, size, most });
    }
    // The guest may write meanwhile, and files of `/proc` have no size before they are read.
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let read = file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(|source| other(&path, source))?;
    let size = u64::try_from(read).unwrap_or(u64::MAX);
    if size > most { Err(FileError::TooLarge { path, size, most }) } else { Ok(content) }
}

fn explain(fault: FileFault, path: String) -> FileError {
    match fault {
        FileFault::Directory => FileError::IsDirectory(path),
        FileFault::Lost => FileError::Lost(path),
        FileFault::Kind(kind) => FileError::NotRegular {
            path,
            kind: match kind {
                Kind::Pipe => "a named pipe",
                Kind::Socket => "a socket",
                Kind::CharacterDevice => "a character device",
                Kind::BlockDevice => "a block device",
                Kind::Other => "something else",
            },
        },
        FileFault::Errno(libc::ENOENT | libc::ENOTDIR) => FileError::NotFound(path),
        FileFault::Errno(libc::EACCES | libc::EPERM | libc::EROFS) => FileError::Denied(path),
        FileFault::Errno(libc::ENOSPC | libc::EDQUOT) => FileError::NoSpace(path),
        FileFault::Errno(errno) => FileError::Other { path, source: io::Error::from_raw_os_error(errno) },
    }
}

fn other(path: &str, source: io::Error) -> FileError {
    FileError::Other { path: path.to_owned(), source }
}

fn unexpected(path: String) -> FileError {
    FileError::Other { path, source: io::Error::other("the sandbox gave an answer to another question") }
}

/// A disk that takes longer to make one small file durable is as good as broken; and some clients give a call up after a
/// minute, so they have to be told before.
const DEADLINE: Duration = Duration::from_secs(40);
