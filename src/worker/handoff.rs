//! The control socket between the supervisor and a child: one JSON value a line, descriptors beside it.
//!
//! It promises that a message is whole or absent, that the descriptors sent with a message arrive with that message,
//! and that the end of the peer, even by SIGKILL, is the end of the stream. A message has a bound in bytes and in
//! descriptors. Nobody but this program's own processes ever holds an end of it.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The end that speaks. It has one owner, since a message must not be cut by another.
#[derive(Debug)]
pub struct Sender(Arc<UnixStream>);

/// The end that listens.
#[derive(Debug)]
pub struct Receiver {
    stream: Arc<UnixStream>,
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

/// A message, and the descriptors that came with it.
#[derive(Debug)]
pub struct Received<T> {
    pub message: T,
    pub descriptors: Vec<OwnedFd>,
}

#[derive(Debug, thiserror::Error)]
pub enum HandoffError {
    #[error("the control socket broke")]
    Broken(#[source] io::Error),
    #[error("a control message has more than {MOST_BYTES} bytes")]
    TooLong,
    #[error("a control message came with {0} descriptors; at most {MOST_DESCRIPTORS} may")]
    TooMany(usize),
    #[error("a control message is not what it should be")]
    Malformed(#[source] serde_json::Error),
    #[error("a control message came without its descriptors")]
    Bare,
}

/// A fresh pair of ends; neither survives an exec unless it is handed on.
///
/// # Errors
/// When the system has no descriptor left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Makes one end usable on the current runtime.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn open(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    let stream = Arc::new(UnixStream::from_std(stream)?);
    Ok((Sender(Arc::clone(&stream)), Receiver { stream, bytes: Vec::new(), descriptors: VecDeque::new() }))
}

impl Sender {
    /// Sends one message. Dropping the future may cut the message, and then the stream is of no further use.
    ///
    /// # Errors
    /// When the peer is gone, or the message exceeds a bound.
    pub async fn send<T: Serialize>(
        &mut self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), HandoffError> {
        if descriptors.len() > MOST_DESCRIPTORS {
            return Err(HandoffError::TooMany(descriptors.len()));
        }
        let line = Line { descriptors: descriptors.len(), message };
        let mut bytes = serde_json::to_vec(&line).map_err(HandoffError::Malformed)?;
        bytes.push(b'\n');
        if bytes.len() > MOST_BYTES {
            return Err(HandoffError::TooLong);
        }
        let mut rest = bytes.as_slice();
        // Descriptors travel with the first byte, so they are there when the line is.
        let mut with = descriptors;
        while !rest.is_empty() {
            let sent = self
                .0
                .async_io(Interest::WRITABLE, || send_some(&self.0, rest, with))
                .await
                .map_err(HandoffError::Broken)?;
            rest = rest.get(sent..).unwrap_or_default();
            with = &[];
        }
        Ok(())
    }
}

impl Receiver {
    /// Waits for the next message; `None` is the end of the peer. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the stream breaks or what comes is no message of this kind.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<Received<T>>, HandoffError> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return self.parse(&line).map(Some);
            }
            if self.bytes.len() >= MOST_BYTES {
                return Err(HandoffError::TooLong);
            }
            let (stream, bytes, descriptors) = (&self.stream, &mut self.bytes, &mut self.descriptors);
            let got = stream
                .async_io(Interest::READABLE, || receive_some(stream, bytes, descriptors))
                .await
                .map_err(HandoffError::Broken)?;
            if got == 0 {
                return Ok(None);
            }
            if self.descriptors.len() > MOST_DESCRIPTORS {
                return Err(HandoffError::TooMany(self.descriptors.len()));
            }
        }
    }

    fn parse<T: DeserializeOwned>(&mut self, line: &[u8]) -> Result<Received<T>, HandoffError> {
        let line: Line<T> = serde_json::from_slice(line).map_err(HandoffError::Malformed)?;
        if line.descriptors > self.descriptors.len() {
            return Err(HandoffError::Bare);
        }
        Ok(Received { message: line.message, descriptors: self.descriptors.drain(..line.descriptors).collect() })
    }
}

/// The message in a whole line, as it came, that has no descriptors; none where there is not such a one.
pub fn message<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let line: Line<T> = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    (line.descriptors == 0).then_some(line.message)
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    descriptors: usize,
    message: T,
}

fn send_some(stream: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    Ok(sendmsg(stream.as_fd(), &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

fn receive_some(stream: &UnixStream, bytes: &mut Vec<u8>, descriptors: &mut VecDeque<OwnedFd>) -> io::Result<usize> {
    let mut chunk = [0; 16 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream.as_fd(), &mut [IoSliceMut::new(&mut chunk)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.extend_from_slice(chunk.get(..got.bytes).unwrap_or_default());
    Ok(got.bytes)
}

/// A configuration with a full manifest of 1024 workers, each with a token of 1024 bytes, fits.
const MOST_BYTES: usize = 4 << 20;

/// A child is given a handful at a time.
const MOST_DESCRIPTORS: usize = 8;

#[cfg(test)]
mod tests;
