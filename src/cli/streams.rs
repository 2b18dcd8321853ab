//! The streams of a command in a sandbox, joined to those of this process, byte for byte.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, watch};

/// Why a stream is not whole in its file.
#[derive(Debug, thiserror::Error)]
pub(super) enum PourError {
    #[error("it comes to more than {0} bytes")]
    TooMuch(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Standard input, read where it may block; the last piece was before its end.
pub(super) fn input() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let mut from = copy_of(rustix::stdio::stdin())?;
    let (piece, pieces) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut bytes = vec![0; PIECE];
            match from.read(&mut bytes) {
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.truncate(read),
            }
            if piece.blocking_send(bytes).is_err() {
                return;
            }
        }
    });
    Ok(pieces)
}

/// Writes what comes into a command's stream, and closes it after the last piece.
pub(super) async fn feed(mut pieces: mpsc::Receiver<Vec<u8>>, mut to: Sender) {
    while let Some(piece) = pieces.recv().await {
        if to.write_all(&piece).await.is_err() {
            // Nobody reads it any more.
            return;
        }
    }
}

/// Writes a command's stream to a file until it ends, or the command has `ended` and nothing more is there; how many
/// bytes that were.
///
/// What a command leaves in the background may hold its stream for ever; that must not hold the command line.
///
/// # Errors
/// When the file cannot be written, or would come to more than `most` bytes, of which then none more are written.
pub(super) async fn pour_at_most(
    most: u64,
    mut from: Receiver,
    to: File,
    mut ended: watch::Receiver<bool>,
) -> Result<u64, PourError> {
    let (to, mut bytes) = (Arc::new(to), 0);
    let fits = |bytes: u64, piece: &[u8]| match bytes.checked_add(piece.len() as u64) {
        Some(after) if after <= most => Ok(()),
        Some(_) | None => Err(PourError::TooMuch(most)),
    };
    loop {
        let mut piece = vec![0; PIECE];
        let read = tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => break,
            read = from.read(&mut piece) => read,
        };
        match read {
            Ok(0) | Err(_) => return Ok(bytes),
            Ok(read) => piece.truncate(read),
        }
        fits(bytes, &piece)?;
        bytes += write(&to, piece).await?;
    }
    // All that the command itself has written lies in the kernel by now, and that is no more than this.
    let mut left = MOST_HELD;
    while left > 0 {
        let mut piece = vec![0; PIECE.min(left)];
        match rustix::io::read(&from, &mut piece) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => break,
            Ok(read) => piece.truncate(read),
        }
        left = left.saturating_sub(piece.len());
        fits(bytes, &piece)?;
        bytes += write(&to, piece).await?;
    }
    Ok(bytes)
}

/// The same for a stream that may be as long as it likes.
pub(super) async fn pour(from: Receiver, to: File, ended: watch::Receiver<bool>) -> Result<u64, PourError> {
    pour_at_most(u64::MAX, from, to, ended).await
}

/// One of this process's own standard streams, to be written to where that may block.
pub(super) fn copy_of(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

async fn write(to: &Arc<File>, piece: Vec<u8>) -> io::Result<u64> {
    let to = Arc::clone(to);
    tokio::task::spawn_blocking(move || (&*to).write_all(&piece).map(|()| piece.len() as u64)).await?
}

/// A command's stream to read from: a pipe, or a terminal, which is read like one.
pub(super) fn readable(end: OwnedFd) -> io::Result<Receiver> {
    rustix::io::ioctl_fionbio(&end, true)?;
    Receiver::from_owned_fd_unchecked(end)
}

/// A command's stream to write to.
pub(super) fn writable(end: OwnedFd) -> io::Result<Sender> {
    rustix::io::ioctl_fionbio(&end, true)?;
    Sender::from_owned_fd_unchecked(end)
}

/// What a pipe holds as the kernel makes it.
const PIECE: usize = 64 << 10;

/// What a pipe can be made to hold without privilege.
const MOST_HELD: usize = 1 << 20;
