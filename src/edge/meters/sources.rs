//! What is read when somebody asks: how much there is at this moment of whatever could grow.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kit::Tenant;
use kit::tasks::Tasks;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::Worker;
use crate::edge::{admit, forward, session};
use crate::worker::Upstream;

/// Where it is read, under one configuration.
pub(crate) struct Sources {
    pub(crate) admit: admit::Admit,
    pub(crate) sessions: session::Lasting,
    pub(crate) pools: forward::Pools,
    pub(crate) workers: Vec<Served>,
    /// Groups of tasks by their names.
    pub(crate) tasks: Vec<(&'static str, Tasks)>,
    /// The tables of buckets, by their names.
    pub(crate) buckets: Vec<(&'static str, Size)>,
    pub(crate) is_stopping: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Says how many entries a table has.
pub(crate) type Size = Box<dyn Fn() -> usize + Send + Sync>;

/// A worker, and whose it is; the sandbox is everybody's.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) tenant: Option<Tenant>,
    pub(crate) upstream: Arc<Upstream>,
}

/// Whether calls can be served now, and why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// It has begun to serve.
    pub serves: bool,
    pub is_stopping: bool,
    /// Each worker by its name, with its tenant where it has one, and whether it is believed to be there.
    pub workers: Vec<(String, Option<String>, bool)>,
}

/// The sources of the last configuration, as metrics.
pub(super) struct Now(pub(super) Arc<Mutex<Option<Sources>>>);

impl Sources {
    pub(super) fn readiness(&self) -> Readiness {
        let worker = |served: &Served| {
            let Worker { worker, tenant } = Worker::of(served);
            (worker, (!tenant.is_empty()).then_some(tenant), served.upstream.is_believed_up())
        };
        Readiness {
            serves: true,
            is_stopping: (self.is_stopping)(),
            workers: self.workers.iter().map(worker).collect(),
        }
    }

    fn encode(&self, to: &mut To<'_>) -> fmt::Result {
        let under_way = self.admit.under_way();
        to.gauge("exchanges_in_flight", "Exchanges under way", under_way)?;
        to.gauge("exchanges_limit", "Exchanges that may be under way", self.admit.most())?;
        let sessions = self.sessions.sizes();
        let public = sessions.by_tenant.iter().map(|(tenant, count)| ([tenant.as_str(), "public"], *count));
        let bridged = self.pools.bridged();
        let upstream = bridged.iter().map(|(tenant, count)| ([tenant.as_str(), "upstream"], *count));
        let help =
            "Sessions that the edge keeps: with clients (public), and with workers for clients without (upstream)";
        to.family("sessions", help, ["tenant", "kind"], public.chain(upstream))?;
        to.gauge("tombstones", "Ended sessions that are remembered one by one", sessions.tombstones)?;
        let help = "Connections to workers that rest between exchanges";
        to.gauge("upstream_pooled_connections", help, self.pools.resting())?;
        let connections = self.tasks.iter().filter(|(group, _)| *group == "connections");
        to.gauge("connections", "Clients' connections", connections.map(|(_, tasks)| tasks.running()).sum::<usize>())?;
        let tasks = self.tasks.iter().map(|(group, tasks)| ([*group], tasks.running()));
        to.family("tasks", "Tasks that have not ended", ["group"], tasks)?;
        let own = [
            ("sessions", sessions.live),
            ("departures", sessions.departed),
            ("flights", sessions.flights),
            ("pools", self.pools.count()),
        ];
        let buckets = self.buckets.iter().map(|(table, size)| (*table, size()));
        let tables = own.into_iter().chain(buckets).map(|(table, size)| ([table], size));
        to.family("table_entries", "Entries of what is kept in memory", ["table"], tables)?;
        let workers: Vec<_> = self.workers.iter().map(|served| (Worker::of(served), &served.upstream)).collect();
        let labelled =
            || workers.iter().map(|(Worker { worker, tenant }, it)| ([worker.as_str(), tenant.as_str()], it));
        let up = labelled().map(|(labels, it)| (labels, i64::from(it.is_believed_up())));
        to.family("worker_up", "Whether the worker is believed to be there", ["worker", "tenant"], up)?;
        let last = labelled().filter_map(|(labels, it)| Some((labels, it.health.last_answer()?.as_secs())));
        let help = "When the worker last answered; absent until it has";
        to.family("worker_last_ok_timestamp_seconds", help, ["worker", "tenant"], last)
    }
}

impl Worker {
    pub(super) fn of(served: &Served) -> Self {
        Self::at(&served.upstream, served.tenant.as_ref().map(Tenant::as_str))
    }

    /// By the operator's name for it, else by its address. Two may have one name, so the tenant stands beside it.
    pub(super) fn at(upstream: &Upstream, tenant: Option<&str>) -> Self {
        let named = upstream.terms.name.clone().filter(|_| !upstream.sends_tenant);
        let unnamed = || if upstream.sends_tenant { "sandbox".to_owned() } else { upstream.address.to_string() };
        Self { worker: named.unwrap_or_else(unnamed), tenant: tenant.unwrap_or_default().to_owned() }
    }
}

impl Readiness {
    /// Whether a call that comes now can be served by some worker.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.serves && !self.is_stopping && self.workers.iter().any(|(_, _, is_up)| *is_up)
    }
}

impl Collector for Now {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.as_ref().map_or(Ok(()), |sources| sources.encode(&mut To(encoder)))
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now(..)")
    }
}

struct To<'a>(DescriptorEncoder<'a>);

impl To<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        let value = ConstGauge::new(value);
        value.encode(self.0.encode_descriptor(name, &format!("{help}."), None, MetricType::Gauge)?)
    }

    fn family<'a, const N: usize, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        names: [&'static str; N],
        children: impl Iterator<Item = ([&'a str; N], V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, &format!("{help}."), None, MetricType::Gauge)?;
        for (values, value) in children {
            let labels: Vec<_> = names.into_iter().zip(values).collect();
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
