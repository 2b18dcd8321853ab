//! What a worker answers, message by message, whether it is one JSON text or a stream of events.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kit::sse::Reader;
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
    Events(Reader),
}

impl Messages {
    pub(super) fn new(from: (Incoming, Wire), events: bool, most: usize) -> Self {
        let form = if events { Form::Events(Reader::new()) } else { Form::Text(Vec::new()) };
        Self { from: Some(from), form, most, heard: kit::clock::now() }
    }

    /// The next message; nothing at the end. Dropped while it waits, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Cause> {
        loop {
            if let Form::Events(reader) = &mut self.form
                && let Some(data) = reader.take()
            {
                return Ok(Some(data.into()));
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
                Form::Events(reader) => {
                    reader.push(&data);
                    reader.unfinished()
                }
            };
            if held > self.most {
                return Err(Cause::WorkerAnswerUnusable("it is larger than is allowed"));
            }
        }
    }

    /// The event to go on from after a break, and the pause that the worker wants before.
    pub(super) fn mark(&self) -> (Option<String>, Option<Duration>) {
        match &self.form {
            Form::Events(reader) => (reader.last_id().map(str::to_owned), reader.retry()),
            Form::Text(_) => (None, None),
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

/// What follows an answer is its end, which takes no time.
const REST: Duration = Duration::from_secs(1);
