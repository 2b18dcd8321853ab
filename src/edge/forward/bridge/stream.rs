//! An answer in events, on its way to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

use crate::edge::{Cut, Notes};

use super::exchange::Piece;

/// Dropped, it tells the exchange that the client has gone.
pub(super) struct Told {
    first: Option<Bytes>,
    rest: mpsc::Receiver<Piece>,
    ended: bool,
    /// Where it is written down why an answer is not whole.
    notes: Arc<Notes>,
}

impl Told {
    pub(super) fn new(first: Bytes, rest: mpsc::Receiver<Piece>, notes: Arc<Notes>) -> Self {
        Self { first: Some(first), rest, ended: false, notes }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match std::task::ready!(self.rest.poll_recv(context)) {
            Some(Piece::Event(event)) => Poll::Ready(Some(Ok(Frame::data(event)))),
            Some(Piece::End) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Some(Piece::Failed(cause, told)) => {
                self.notes.is_refused(&cause);
                self.ended = true;
                Poll::Ready(Some(Ok(Frame::data(told))))
            }
            Some(Piece::Refused(cause)) => {
                self.notes.is_refused(&cause);
                self.ended = true;
                Poll::Ready(Some(Err(Cut)))
            }
            // An exchange that went without saying so must not look complete.
            Some(Piece::Whole(..)) | None => {
                self.ended = true;
                Poll::Ready(Some(Err(Cut)))
            }
        }
    }
}

/// A message as an event; line ends in a JSON text stand between its words, where a space does as well.
pub(super) fn event(message: &[u8]) -> Bytes {
    let line = message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
    b"event: message\ndata: ".iter().copied().chain(line).chain(*b"\n\n").collect()
}

pub(super) const COMMENT: &[u8] = b": keep-alive\n\n";
