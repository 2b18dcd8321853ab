//! What becomes known of one exchange on its way, told once at its end.
//!
//! The stages write it down as they find it out, each its own part, and none reads it. What stands here may be logged:
//! no secret, no session id, nothing of a call's arguments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::StatusCode;
use kit::Tenant;

use super::audited::Audited;
use super::method::Method;
use super::outcome::{self, Outcome, Reason};
use super::{Call, Meters, Worker, verdict};
use crate::audit::Entry;
use crate::audit::line::masked;
use crate::edge::{Cause, Era};
use crate::identity::Principal;
use crate::worker::Upstream;

/// The notes of one exchange.
pub(crate) struct Notes {
    meters: Meters,
    began: Instant,
    tenant: OnceLock<Tenant>,
    method: OnceLock<Method>,
    /// Of a `tools/call`: the tool, as the client wrote it, cut to a bearable length and with no token in it.
    tool: OnceLock<String>,
    era: OnceLock<&'static str>,
    upstream: OnceLock<Arc<Upstream>>,
    refused: OnceLock<Refused>,
    /// How an answer of the edge's own ended up.
    own: OnceLock<Outcome>,
    body_bytes: AtomicU64,
    /// Microseconds that went into waiting for others: for the body, and for the worker.
    awaited: AtomicU64,
    /// Whether the wait for a worker is in it.
    was_answered: OnceLock<()>,
    record: Option<Audited>,
}

struct Refused {
    outcome: Outcome,
    reason: Reason,
    is_unknown: bool,
    why: Option<&'static str>,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Whole,
    /// It was broken off here, since the worker's part of it broke or its time was over.
    Cut,
    /// The client has left.
    Left,
}

/// What the request's line in the log says.
pub(crate) struct Told<'a> {
    pub(crate) outcome: &'static str,
    /// Where no other line says it.
    pub(crate) why: Option<&'static str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) era: Option<&'static str>,
    pub(crate) worker: Option<&'a str>,
    pub(crate) took: Duration,
    pub(crate) body_bytes: u64,
    /// A question for the edge's health, which comes all the time.
    pub(crate) is_routine: bool,
}

impl Meters {
    /// The notes of an exchange that begins now.
    pub(crate) fn begin(&self) -> Arc<Notes> {
        Arc::new(Notes {
            meters: self.clone(),
            began: kit::clock::now(),
            tenant: OnceLock::new(),
            method: OnceLock::new(),
            tool: OnceLock::new(),
            era: OnceLock::new(),
            upstream: OnceLock::new(),
            refused: OnceLock::new(),
            own: OnceLock::new(),
            body_bytes: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
            was_answered: OnceLock::new(),
            record: self.0.record.get().cloned().map(Audited::new),
        })
    }
}

// Each part is found out once; were it told twice, the first would count.
impl Notes {
    /// # Errors
    /// When it must be recorded and cannot be.
    pub(crate) fn comes_from(&self, principal: &Principal) -> Result<(), Cause> {
        let _ = self.tenant.set(principal.tenant().clone());
        self.record.as_ref().map_or(Ok(()), |record| record.comes_from(principal))
    }

    /// The part that the record of calls alone wants, where there is one.
    pub(crate) fn record(&self) -> Option<&Audited> {
        self.record.as_ref()
    }

    /// The body is here, after so long.
    pub(crate) fn has_body(&self, bytes: usize, waited: Duration) {
        self.body_bytes.store(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.waits(waited);
    }

    /// What a message asks for; a response asks for nothing.
    pub(crate) fn asks(&self, method: Option<&str>) {
        let _ = self.method.set(method.map_or(Method::RESPONSE, Method::of));
    }

    pub(crate) fn asks_for_stream(&self) {
        let _ = self.method.set(Method::STREAM);
    }

    pub(crate) fn asks_for_end(&self) {
        let _ = self.method.set(Method::END);
    }

    pub(crate) fn asks_for_health(&self) {
        let _ = self.method.set(Method::HEALTH);
    }

    /// It is about logging in, or to be told how: one of the words that the list of methods has for it.
    pub(crate) fn logs_in(&self, word: &'static str) {
        let _ = self.method.set(Method::own(word));
    }

    /// The edge itself answers, with this status.
    pub(crate) fn answers_itself(&self, status: StatusCode) {
        let _ = self.own.set(Outcome::of_status(status));
    }

    pub(crate) fn names_tool(&self, tool: &str) {
        let _ = self.tool.set(masked(tool, MOST_NAME));
    }

    pub(crate) fn speaks(&self, era: Era) {
        let _ = self.era.set(match era {
            Era::Modern => "modern",
            Era::Opening => "opening",
            Era::Legacy => "legacy",
        });
    }

    pub(crate) fn goes_to(&self, upstream: &Arc<Upstream>) {
        let _ = self.upstream.set(Arc::clone(upstream));
    }

    /// The head of the worker's answer was waited for so long, and the edge adds the rest of the time.
    pub(crate) fn was_answered(&self, waited: Duration) {
        self.waits(waited);
        let _ = self.was_answered.set(());
    }

    pub(crate) fn is_refused(&self, cause: &Cause) {
        let (outcome, mut reason) = outcome::of(cause);
        if *cause == Cause::EdgeBusy && self.era.get() == Some(&"opening") {
            reason = Reason::Session("full");
        }
        let why = (*cause == Cause::NoWorker).then_some("the tenant has no worker of its credential's catalogue");
        let _ = self.refused.set(Refused { outcome, reason, is_unknown: outcome::is_unknown(cause), why });
    }

    /// The head of the answer goes out.
    pub(crate) fn answers(&self) {
        if self.was_answered.get().is_some() && self.refused.get().is_none() {
            let awaited = Duration::from_micros(self.awaited.load(Ordering::Relaxed));
            let took = kit::clock::now().saturating_duration_since(self.began);
            self.meters.0.families.added.observe(took.saturating_sub(awaited).as_secs_f64());
        }
    }

    /// What the first piece of an answer with this status says of it.
    pub(crate) fn judge(&self, piece: &[u8]) -> Outcome {
        if self.refused.get().is_some() || self.own.get().is_some() { Outcome::Ok } else { verdict::of(piece) }
    }

    /// Counts the exchange, which has ended now.
    pub(crate) fn end(&self, status: Option<StatusCode>, ended: Ended, verdict: Outcome, sent: u64) -> Told<'_> {
        let method = self.method.get().copied().unwrap_or(Method::NONE);
        let verdict = self.own.get().copied().unwrap_or(verdict);
        let outcome = match (self.refused.get(), ended) {
            (Some(refused), _) => refused.outcome,
            (None, Ended::Cut) => Outcome::Upstream,
            (None, Ended::Whole) => verdict,
            (None, Ended::Left) if verdict != Outcome::Ok => verdict,
            (None, Ended::Left) if method.is_endless() && status.is_some() => Outcome::Ok,
            (None, Ended::Left) => Outcome::Gone,
        };
        let took = kit::clock::now().saturating_duration_since(self.began);
        let tenant = self.tenant.get().map_or("", Tenant::as_str);
        let meters = &self.meters;
        meters.count(method, outcome);
        meters.took(method, took);
        if method.is_call() {
            let call = Call { tenant: tenant.to_owned(), outcome: outcome.word() };
            meters.0.families.calls.get_or_create(&call).inc();
        }
        if let Some(refused) = self.refused.get() {
            // Whoever has not been let in is counted for nobody.
            meters.because(refused.reason, tenant);
        }
        let upstream = self.upstream.get();
        if let Some(upstream) = upstream
            && self.refused.get().map_or(ended == Ended::Cut, |refused| refused.is_unknown)
        {
            let worker = Worker::at(upstream, (!upstream.sends_tenant).then_some(tenant));
            meters.0.families.unknown.get_or_create(&worker).inc();
        }
        let body_bytes = self.body_bytes.load(Ordering::Relaxed);
        if let Some(record) = &self.record {
            record.end(Entry {
                tool: self.tool.get().cloned(),
                outcome: outcome.word(),
                status: status.map(|status| status.as_u16()),
                ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                bytes_in: body_bytes,
                bytes_out: sent,
                ..Entry::default()
            });
        }
        Told {
            outcome: outcome.word(),
            why: self.refused.get().and_then(|refused| refused.why),
            tool: self.tool.get().map(String::as_str),
            era: self.era.get().copied(),
            worker: upstream.map(|upstream| upstream.label()),
            took,
            body_bytes,
            is_routine: method == Method::HEALTH,
        }
    }

    fn waits(&self, waited: Duration) {
        let waited = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.awaited.fetch_add(waited, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Arc<Self> {
        Meters::new("test").begin()
    }
}

impl Ended {
    /// Whether, and by whom, an answer was cut.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Whole => "no",
            Self::Cut => "here",
            Self::Left => "by_client",
        }
    }
}

/// Longer than any tool's name should be.
const MOST_NAME: usize = 64;
