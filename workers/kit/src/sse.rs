//! Reading an event stream: what the events of a `text/event-stream` say, out of bytes as they come.
//!
//! Line ends may be of any kind and chunks be cut anywhere. An event that is not whole at the end of the stream is
//! none. The types of events are not told apart; the protocol has one.

use std::collections::VecDeque;
use std::time::Duration;

/// Holds what has been read of the event under way, and the whole ones until they are taken.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    begun: bool,
    whole: VecDeque<Vec<u8>>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Reader {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in more of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_cr = false;
                    self.line.push(*byte);
                }
            }
        }
    }

    /// The data of the next whole event that has some.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.whole.pop_front()
    }

    /// Bytes of an event that is not whole yet.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// The id to go on from after a break: the last one that was given, also by an event without data.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The pause before going on after a break, if the stream has asked for one.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                self.whole.push_back(data);
            }
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id = std::str::from_utf8(value).ok().filter(|id| !id.is_empty()).map(str::to_owned);
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let pause = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry = pause.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::Reader;
    use std::time::Duration;

    fn check(stream: &str, expected: &[&str]) {
        for text in [stream.to_owned(), stream.replace('\n', "\r\n"), stream.replace('\n', "\r")] {
            let mut whole = Reader::new();
            whole.push(text.as_bytes());
            let mut bytewise = Reader::new();
            for byte in text.bytes() {
                bytewise.push(&[byte]);
            }
            for mut reader in [whole, bytewise] {
                let data: Vec<_> = std::iter::from_fn(|| reader.take()).collect();
                assert_eq!(data, expected.iter().map(|text| text.as_bytes()).collect::<Vec<_>>(), "{text:?}");
            }
        }
    }

    #[test]
    fn events_come_out_whole_whatever_their_line_ends_and_wherever_they_are_cut() {
        check(
            "id: 0\nretry: 1\ndata:\n\n: c\n\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid: 2\ndata:x\n\ndata: half",
            &["{\"a\":\n1}", "x"],
        );
        check("\u{feff}data: x\n\n\ndata\n\ndatax: y\n\ndata:  z\n\n", &["x", " z"]);
        check("", &[]);
    }

    #[test]
    fn ids_and_pauses_are_the_last_that_were_given_also_without_data() {
        let mut reader = Reader::new();
        assert_eq!((reader.last_id(), reader.retry()), (None, None));
        reader.push(b"id: a_1\nretry: 300\ndata:\n\n");
        assert_eq!((reader.last_id(), reader.retry()), (Some("a_1"), Some(Duration::from_millis(300))));
        reader.push(b"id: b\nretry: soon\ndata: x\n\ndata: y\n\n");
        assert_eq!((reader.last_id(), reader.retry()), (Some("b"), Some(Duration::from_millis(300))));
        reader.push(b"id: with\0nul\n\n");
        assert_eq!(reader.last_id(), Some("b"));
        reader.push(b"id\n\n");
        assert_eq!(reader.last_id(), None);
    }

    #[test]
    fn what_is_not_whole_is_counted() {
        let mut reader = Reader::new();
        reader.push(b"data: abc\ndata: d");
        assert_eq!(reader.unfinished(), "abc".len() + "data: d".len());
        reader.push(b"\n\n");
        assert_eq!(reader.unfinished(), 0);
    }
}
