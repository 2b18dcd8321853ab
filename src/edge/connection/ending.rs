//! The end of an exchange, which is told once: in the counters, and in the one line that a request has in the log.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as _, Frame};
use tracing::Span;

use crate::edge::{Answer, Ended, Notes, Outcome};

/// Lives as long as the exchange. Dropped before the answer was whole, it says that the client has left.
pub(super) struct Ending {
    notes: Arc<Notes>,
    span: Span,
    status: Option<StatusCode>,
    /// The length of the answer's body, where it is known beforehand.
    length: Option<u64>,
    sent: u64,
    verdict: Outcome,
    is_told: bool,
}

impl Ending {
    pub(super) fn new(notes: Arc<Notes>, span: Span) -> Self {
        Self { notes, span, status: None, length: None, sent: 0, verdict: Outcome::Ok, is_told: false }
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// The head of the answer goes out; a bare one has nothing behind it, whatever it says.
    pub(super) fn begins(&mut self, answer: &Answer, is_bare: bool) {
        self.notes.answers();
        self.status = Some(answer.status());
        self.length = answer.body().size_hint().exact();
        if is_bare || answer.body().is_end_stream() {
            self.end(Ended::Whole);
        }
    }

    /// A piece of the answer goes out.
    pub(super) fn passes(&mut self, piece: &Frame<Bytes>, is_last: bool) {
        let data = piece.data_ref().map_or(&[][..], |data| data);
        if self.sent == 0 && !data.is_empty() {
            self.verdict = self.notes.judge(data);
        }
        self.sent = self.sent.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        // Who was told the length asks for nothing behind the last byte.
        if is_last || self.length.is_some_and(|length| self.sent >= length) {
            self.end(Ended::Whole);
        }
    }

    pub(super) fn end(&mut self, ended: Ended) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let status = self.status.map(|status| status.as_u16());
        let told = self.notes.end(self.status, ended, self.verdict, self.sent);
        let _within = self.span.enter();
        if told.is_routine {
            // It would drown the others.
            tracing::debug!(status, outcome = told.outcome, "answered");
            return;
        }
        tracing::info!(
            name = told.tool,
            era = told.era,
            worker = told.worker,
            status,
            outcome = told.outcome,
            why = told.why,
            duration_ms = %format_args!("{:.3}", told.took.as_secs_f64() * 1000.0),
            bytes_in = told.body_bytes,
            bytes_out = self.sent,
            cut = ended.word(),
            "{}",
            if status.is_some() { "answered" } else { "left without an answer" },
        );
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end(Ended::Left);
    }
}
