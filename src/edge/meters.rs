//! What is counted, for whoever looks after the service.
//!
//! An exchange is counted once, at its end, from what its [`Notes`] have gathered on the way; what there is at a moment
//! (exchanges, sessions, connections, the sizes of tables) is read when somebody asks. Every label has few values,
//! whatever clients and workers say: a method is one of a fixed list, a tenant one that the operator made, a worker one
//! that the operator listed. A session, an address or a worker's own word is never a label. The names of tools are
//! not either: which of them exist stands in workers' answers, and those pass as bytes.
//!
//! ```text
//! notes     what becomes known of one exchange
//! audited   what of it goes on record
//! outcome   how it ended, in one of nine words
//! method    what it was about, in one of a fixed list
//! verdict   whether an answer is an error, from its first bytes
//! sources   what is read when somebody asks
//! ```

mod audited;
mod method;
mod notes;
mod outcome;
mod sources;
mod verdict;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::audit::Log;

pub(crate) use notes::{Ended, Notes};
pub(crate) use outcome::Outcome;
pub use sources::Readiness;
pub(crate) use sources::{Served, Size, Sources};

use method::Method;
use outcome::Reason;

/// The counters of one edge; clones count in the same place.
#[derive(Clone)]
pub struct Meters(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// The children of both families, resolved once: a method's row, an outcome's column.
    requests: Vec<OnceLock<Counter>>,
    durations: Vec<OnceLock<Histogram>>,
    families: Families,
    sources: Arc<Mutex<Option<Sources>>>,
    record: OnceLock<Log>,
}

/// Clones of what is registered.
struct Families {
    requests: Family<Request, Counter>,
    duration: Family<About, Histogram, fn() -> Histogram>,
    added: Histogram,
    calls: Family<Call, Counter>,
    limited: Family<Limited, Counter>,
    sessions: Family<Because, Counter>,
    failures: Family<Because, Counter>,
    unknown: Family<Worker, Counter>,
    reloaded: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct About {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    tenant: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limited {
    tenant: String,
    limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Because {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Worker {
    worker: String,
    tenant: String,
}

impl Meters {
    /// Counters at zero, of an edge before this kind of sandbox.
    #[must_use]
    pub fn new(backend: &str) -> Self {
        Self::beside(backend, Vec::new())
    }

    /// The same, shown together with what others collect.
    #[must_use]
    pub fn beside(backend: &str, others: Vec<Box<dyn Collector>>) -> Self {
        let families = Families::new();
        let sources = Arc::default();
        let mut registry = families.registry(backend, &sources);
        others.into_iter().for_each(|other| registry.register_collector(other));
        let requests = std::iter::repeat_with(OnceLock::new).take(Method::COUNT * Outcome::COUNT).collect();
        let durations = std::iter::repeat_with(OnceLock::new).take(Method::COUNT).collect();
        Self(Arc::new(Inner { registry, requests, durations, families, sources, record: OnceLock::new() }))
    }

    /// From now on each exchange with a known credential, and each that is about a login, goes on record there too.
    pub fn record_in(&self, log: Log) {
        let _ = self.0.record.set(log);
    }

    /// All of it in the text format of Prometheus, version 0.0.4; blocking where what others collect is.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        // A String takes whatever is written to it.
        let _ = prometheus_text::encode(&mut text, &self.0.registry);
        text
    }

    /// Whether a call that comes now can be served.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let sources = self.0.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.as_ref().map_or_else(Readiness::default, Sources::readiness)
    }

    /// From now on these are read; the configuration that they belong to has just been taken up.
    pub(crate) fn follow(&self, sources: Sources) {
        for served in &sources.workers {
            // One that never fails stands there with zero.
            drop(self.0.families.unknown.get_or_create(&Worker::of(served)));
        }
        let now = i64::try_from(kit::clock::since_epoch().as_secs()).unwrap_or(i64::MAX);
        self.0.families.reloaded.set(now);
        *self.0.sources.lock().unwrap_or_else(PoisonError::into_inner) = Some(sources);
    }

    /// A request whose head nobody could read has been answered.
    pub(crate) fn unreadable(&self) {
        self.count(Method::NONE, Outcome::Invalid);
    }

    fn count(&self, method: Method, outcome: Outcome) {
        let Inner { requests, families, .. } = &*self.0;
        let labels = Request { method: method.word(), outcome: outcome.word() };
        if let Some(request) = requests.get(method.index() * Outcome::COUNT + outcome.index()) {
            request.get_or_init(|| families.requests.get_or_create_owned(&labels)).inc();
        }
    }

    fn took(&self, method: Method, time: Duration) {
        let Inner { durations, families, .. } = &*self.0;
        let made = || families.duration.get_or_create_owned(&About { method: method.word() });
        if let Some(durations) = durations.get(method.index()) {
            durations.get_or_init(made).observe(time.as_secs_f64());
        }
    }

    fn because(&self, reason: Reason, tenant: &str) {
        let Families { limited, sessions, failures, .. } = &self.0.families;
        match reason {
            Reason::None => {}
            Reason::Limit(limit) => {
                limited.get_or_create(&Limited { tenant: tenant.to_owned(), limit }).inc();
            }
            Reason::Session(reason) => {
                sessions.get_or_create(&Because { reason }).inc();
            }
            Reason::Credential(reason) => {
                failures.get_or_create(&Because { reason }).inc();
            }
        }
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters(..)")
    }
}

impl Families {
    fn new() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(DURATIONS)),
            added: Histogram::new(ADDED),
            calls: Family::default(),
            limited: Family::default(),
            sessions: Family::default(),
            failures: Family::default(),
            unknown: Family::default(),
            reloaded: Gauge::default(),
        }
    }

    fn registry(&self, backend: &str, sources: &Arc<Mutex<Option<Sources>>>) -> Registry {
        let mut all = Registry::default();
        let ours = all.sub_registry_with_prefix("playground");
        let build = Gauge::<i64>::default();
        build.set(1);
        let what = [("version", env!("CARGO_PKG_VERSION").to_owned()), ("backend", backend.to_owned())];
        let labelled = ours.sub_registry_with_labels(what.into_iter().map(|(name, is)| (name.into(), is.into())));
        labelled.register("build_info", "What runs here", build);
        ours.register(
            "requests",
            "Requests, counted when their answer has ended, was cut or was left",
            self.requests.clone(),
        );
        let help = "From a request's head to the end of its answer";
        ours.register_with_unit("request_duration", help, Unit::Seconds, self.duration.clone());
        let help = "The edge's own time: from a request's head to that of its answer, without the wait for the request's \
                    body and for the worker; of exchanges that are neither bridged nor openings of sessions";
        ours.register_with_unit("added_latency", help, Unit::Seconds, self.added.clone());
        ours.register("tool_calls", "Requests whose method is tools/call", self.calls.clone());
        let help = "Requests that met a limit; of those of an address no tenant is known";
        ours.register("rate_limited", help, self.limited.clone());
        ours.register(
            "sessions_refused",
            "Requests refused for their session, or for want of one",
            self.sessions.clone(),
        );
        ours.register("auth_failures", "Requests refused for their credential", self.failures.clone());
        let help = "Exchanges that broke off when the worker may have begun on them; they were not repeated";
        ours.register("worker_unknown_outcome", help, self.unknown.clone());
        let help = "When the edge last took up a configuration, that of its start included";
        ours.register_with_unit("config_reload_success_timestamp", help, Unit::Seconds, self.reloaded.clone());
        ours.register_collector(Box::new(sources::Now(Arc::clone(sources))));
        all
    }
}

/// Up to the time that an operator's proxy usually allows.
const DURATIONS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];

/// Some ten of microseconds are usual.
const ADDED: [f64; 11] = [0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.1, 1.0];

/// The kind of what [`Meters::exposition`] yields.
pub const EXPOSITION: &str = prometheus_text::CONTENT_TYPE;
