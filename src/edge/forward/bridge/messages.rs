//! What a worker answers, message by message, whether it is one JSON text or a stream of events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kit::tasks::Tasks;
use tokio::time::timeout;

use crate::edge::Cause;
use crate::edge::forward::leave::read_out;
use crate::edge::forward::pool::Wire;

pub(super) struct Messages {
    from: Option<(Incoming, Wire)>,
    form: Form,
    most: usize,
    /// When the last byte came.
    pub(super) heard: Instant,
}

enum Form {
    Text(Vec<u8>),
    Events(Splitter),
}

/// Takes events out of a stream, whatever its line ends and wherever it is cut.
#[derive(Default)]
struct Splitter {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    whole: VecDeque<Bytes>,
}

impl Messages {
    pub(super) fn new(from: (Incoming, Wire), events: bool, most: usize) -> Self {
        let form = if events { Form::Events(Splitter::default()) } else { Form::Text(Vec::new()) };
        Self { from: Some(from), form, most, heard: kit::clock::now() }
    }

    /// The next message; nothing at the end. Dropped while it waits, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Cause> {
        loop {
            if let Form::Events(splitter) = &mut self.form
                && let Some(data) = splitter.whole.pop_front()
            {
                return Ok(Some(data));
            }
            let Some((body, _)) = &mut self.from else { return Ok(None) };
            let Some(frame) = body.frame().await else {
                if let Some((_, wire)) = self.from.take() {
                    wire.rest();
                }
                return Ok(match &mut self.form {
                    Form::Text(text) => Some(Bytes::from(std::mem::take(text))),
                    Form::Events(_) => None,
                });
            };
            let data = frame.map_err(|_fault| Cause::Broken)?.into_data().unwrap_or_default();
            self.heard = kit::clock::now();
            let held = match &mut self.form {
                Form::Text(text) => {
                    text.extend_from_slice(&data);
                    text.len()
                }
                Form::Events(splitter) => splitter.push(&data),
            };
            if held > self.most {
                return Err(Cause::WorkerAnswerUnusable("it is larger than is allowed"));
            }
        }
    }

    /// Lets the worker finish, so that the connection can be kept.
    pub(super) fn rest(self, tasks: &Tasks) {
        let most = u64::try_from(self.most).unwrap_or(u64::MAX);
        if let Some((body, wire)) = self.from {
            tasks.start(async move {
                let _ = timeout(REST, read_out(body, wire, most)).await;
            });
        }
    }
}

impl Splitter {
    /// Takes in more of the stream; says how much of it waits for its end.
    fn push(&mut self, bytes: &[u8]) -> usize {
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
        self.line.len() + self.data.len()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                self.whole.push_back(data.into());
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
    }
}

/// What follows an answer is its end, which takes no time.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::Splitter;

    #[test]
    fn events_come_out_whole_whatever_their_line_ends_and_wherever_they_are_cut() {
        let stream =
            "id: 0\nretry: 1\ndata:\n\n: c\n\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid: 2\ndata:x\n\ndata: half";
        for text in [stream.to_owned(), stream.replace('\n', "\r\n"), stream.replace('\n', "\r")] {
            let mut whole = Splitter::default();
            whole.push(text.as_bytes());
            let mut bytewise = Splitter::default();
            for byte in text.bytes() {
                bytewise.push(&[byte]);
            }
            assert_eq!(whole.whole, ["{\"a\":\n1}", "x"]);
            assert_eq!(bytewise.whole, whole.whole);
        }
    }
}
