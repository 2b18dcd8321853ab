//! Where events begin and end in a stream of bytes.

use std::ops::Range;

/// Follows the line ends of an event stream, whatever kind they are and wherever chunks are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    /// Bytes have been seen since the last blank line.
    within: bool,
    /// The current line has no byte yet.
    line_empty: bool,
    /// The last byte was a CR, and an LF after it belongs to it.
    after_cr: bool,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { within: false, line_empty: true, after_cr: false }
    }

    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.within = !self.line_empty;
                    self.line_empty = true;
                    self.after_cr = *byte == b'\r';
                }
                _ => {
                    self.within = true;
                    self.line_empty = false;
                    self.after_cr = false;
                }
            }
        }
    }

    /// Whether something may be said here without falling into the middle of an event.
    pub(super) fn between(self) -> bool {
        !self.within && self.line_empty
    }
}

/// A whole event as it lies in a text.
pub(super) struct Event {
    /// Its data lines, put together.
    pub(super) data: Vec<u8>,
    /// Where each of these lines lies, without its end.
    pub(super) lines: Vec<Range<usize>>,
}

/// The events with data whose end is in `text`.
pub(super) fn events(text: &[u8]) -> Vec<Event> {
    let mut found = Vec::new();
    let mut event = Event { data: Vec::new(), lines: Vec::new() };
    let mut start = 0;
    while let Some(rest) = text.get(start..)
        && let Some(length) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        && let Some((line, end)) = rest.split_at_checked(length)
    {
        if line.is_empty() {
            let whole = std::mem::replace(&mut event, Event { data: Vec::new(), lines: Vec::new() });
            found.extend((!whole.lines.is_empty()).then_some(whole));
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if !event.lines.is_empty() {
                event.data.push(b'\n');
            }
            event.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            event.lines.push(start..start + length);
        }
        start += length + if end.starts_with(b"\r\n") { 2 } else { 1 };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Events;

    fn check(stream: &[u8]) -> bool {
        let mut whole = Events::new();
        whole.follow(stream);
        let mut bytewise = Events::new();
        for byte in stream {
            bytewise.follow(&[*byte]);
        }
        assert_eq!(whole.between(), bytewise.between(), "chunk borders do not matter");
        whole.between()
    }

    #[test]
    fn events_end_with_a_blank_line_of_any_kind() {
        for between in
            [&b""[..], b"data: x\n\n", b"data: x\r\n\r\n", b"data: x\r\r", b": c\n\n", b"data: a\n\ndata: b\n\n", b"\n"]
        {
            assert!(check(between), "{between:?}");
        }
        for within in [
            &b"d"[..],
            b"data: x",
            b"data: x\n",
            b"data: x\r\n",
            b"id: 1\ndata: x\n",
            b"data: a\n\nd",
            b"data: x\r\n\r\nid",
        ] {
            assert!(!check(within), "{within:?}");
        }
    }
}
