//! What a worker answers, message by message, whether it is one JSON text or a stream of events.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kit::sse::Reader;
use kit::tasks::Tasks;
use tokio::time::timeout;

use crate::edge::forward::leave::read_out;
use crate::edge::forward::pool::Wire;
use crate::edge::{Cause, Reserved};

pub(super) struct Messages {
    from: Option<(Incoming, Wire)>,
    form: Form,
    most: usize,
    /// What is held of it counts here.
    budget: Option<Reserved>,
    /// When the last byte came.
    pub(super) heard: Instant,
}

/// One of them, with its share of the budget.
pub(super) struct Message {
    text: Bytes,
    share: Option<Reserved>,
}

enum Form {
    Text(Vec<u8>),
    Events(Reader),
}

impl Messages {
    pub(super) fn new(from: (Incoming, Wire), events: bool, most: usize) -> Self {
        let form = if events { Form::Events(Reader::new()) } else { Form::Text(Vec::new()) };
        Self { from: Some(from), form, most, budget: None, heard: kit::clock::now() }
    }

    /// The same with a bound beyond their own.
    pub(super) fn within(self, budget: Reserved) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The next message; nothing at the end. Dropped while it waits, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Cause> {
        loop {
            if let Form::Events(reader) = &mut self.form
                && let Some(data) = reader.take()
            {
                return Ok(Some(self.message(data)));
            }
            let Some((body, _)) = &mut self.from else { return Ok(None) };
            let Some(frame) = body.frame().await else {
                if let Some((_, wire)) = self.from.take() {
                    wire.rest();
                }
                return Ok(match &mut self.form {
                    Form::Text(text) => {
                        let text = std::mem::take(text);
                        Some(self.message(text))
                    }
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
                return Err(Cause::ReplyTooLarge { most: u64::try_from(self.most).unwrap_or(u64::MAX) });
            }
            if let Some(budget) = &mut self.budget {
                budget.reach(held).map_err(unheld)?;
            }
        }
    }

    fn message(&mut self, text: Vec<u8>) -> Message {
        let share = self.budget.as_mut().map(|budget| budget.split(text.len()));
        Message { text: text.into(), share }
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

impl Message {
    /// Other words in place of these, which count as these did until the last reference to them goes.
    pub(super) fn put(self, text: Bytes) -> Result<Bytes, Cause> {
        let Some(mut share) = self.share else { return Ok(text) };
        share.reach(text.len()).map_err(unheld)?;
        Ok(share.around(text))
    }
}

impl std::ops::Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// The worker has answered by now, so nobody may be told that nothing was done.
fn unheld(full: Cause) -> Cause {
    let most = if let Cause::TenantFull { most } = full { Some(most) } else { None };
    Cause::ReplyUnheld { most }
}

/// What follows an answer is its end, which takes no time.
const REST: Duration = Duration::from_secs(1);
