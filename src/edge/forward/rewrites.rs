//! A stream of which the client is to see some messages otherwise, event by event as they come.
//!
//! An event is held until it is whole, and passes as it came unless something in it is to be changed. What comes behind the
//! last whole one is nothing to a client, and is not passed on.

use bytes::{Bytes, BytesMut};

use crate::edge::Cause;

use super::edited::within;
use super::sse::{self, Events};

pub(super) struct Rewrites {
    held: BytesMut,
    /// Where what is held stands.
    events: Events,
    /// How much is held at the most.
    most: usize,
    change: Change,
}

/// Another text for a message, or none where it stays.
pub(super) type Change = Box<dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, Cause> + Send>;

impl Rewrites {
    pub(super) fn new(most: usize, change: Change) -> Self {
        Self { held: BytesMut::new(), events: Events::new(), most, change }
    }

    /// What may pass once these have come; nothing while an event is not whole.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<Bytes, Cause> {
        let (mut end, held) = (0, self.held.len());
        for (place, byte) in bytes.iter().enumerate() {
            self.events.follow(&[*byte]);
            if self.events.between() {
                end = held + place + 1;
            }
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() - end > self.most {
            return Err(Cause::WorkerAnswerUnusable("an event of its stream is too large to be looked into"));
        }
        let whole = self.held.split_to(end).freeze();
        let mut told: Option<Vec<u8>> = None;
        // From the last to the first, so that the places of those before stay.
        for event in sse::events(&whole).iter().rev() {
            if let Some(data) = (self.change)(&event.data)? {
                told = Some(within(told.as_deref().unwrap_or(&whole), &event.lines, &data));
            }
        }
        Ok(told.map_or(whole, Bytes::from))
    }
}

#[cfg(test)]
mod tests {
    use super::Rewrites;

    fn rewrites(most: usize) -> Rewrites {
        Rewrites::new(most, Box::new(|text| Ok((text == b"old").then(|| b"new".to_vec()))))
    }

    fn whole(stream: &str, piece: usize) -> String {
        let (mut rewrites, mut told) = (rewrites(1000), Vec::new());
        for piece in stream.as_bytes().chunks(piece) {
            told.extend_from_slice(&rewrites.pass(piece).expect("small"));
        }
        String::from_utf8(told).expect("text")
    }

    #[test]
    fn what_is_to_be_changed_is_wherever_it_is_cut_and_all_else_passes_as_it_came() {
        for end in ["\n", "\r\n", "\r"] {
            let before = ": c\n\nid: 1\ndata: old\n\ndata: older\n\ndata:old\nid: 2\n\n".replace('\n', end);
            let after = ": c\n\nid: 1\ndata: new\n\ndata: older\n\ndata: new\nid: 2\n\n".replace('\n', end);
            for piece in 1..before.len() + 1 {
                assert_eq!(whole(&before, piece), after, "{end:?} {piece}");
            }
        }
    }

    #[test]
    fn half_an_event_waits_and_one_without_an_end_is_refused() {
        let mut rewrites = rewrites(8);
        assert_eq!(rewrites.pass(b"data: o").expect("small").as_ref(), b"");
        assert_eq!(rewrites.pass(b"ld\n\ndata: x").expect("small").as_ref(), b"data: new\n\n");
        assert!(rewrites.pass(b"x").is_ok());
        assert!(rewrites.pass(b"x").is_err());
    }
}
