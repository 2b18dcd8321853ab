//! What the system says of this process, under the names that every exporter uses.
//!
//! Only the process's own entry in `/proc` is read, which stays open to it without privileges; where there is none, or a
//! number is not to be had, its metric is absent.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

#[derive(Debug)]
pub(super) struct Process {
    ticks: u64,
    page: u64,
}

/// The fields of `/proc/self/stat` that are told, in its units.
struct Stat {
    cpu: u64,
    started: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { ticks: clock_ticks_per_second().max(1), page: u64::try_from(page_size()).unwrap_or(u64::MAX) }
    }

    fn seconds(&self, ticks: u64) -> f64 {
        std::time::Duration::from_millis(ticks.saturating_mul(1000) / self.ticks).as_secs_f64()
    }
}

impl Collector for Process {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, value: f64| {
            ConstGauge::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        if let Some(open) = descriptors() {
            gauge("process_open_fds", "Open file descriptors.", float(open))?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            gauge("process_max_fds", "File descriptors that may be open.", float(most))?;
        }
        let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(stat) else { return Ok(()) };
        let resident = stat.resident_pages.saturating_mul(self.page);
        gauge("process_resident_memory_bytes", "Resident memory size in bytes.", float(resident))?;
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", float(stat.virtual_bytes))?;
        if let Some(booted) = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot) {
            let help = "Start time of the process since the Unix epoch in seconds.";
            gauge("process_start_time_seconds", help, float(booted) + self.seconds(stat.started))?;
        }
        let help = "User and system time spent in seconds.";
        let cpu = to.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
        ConstCounter::new(self.seconds(stat.cpu)).encode(cpu)
    }
}

fn descriptors() -> Option<u64> {
    // One of them is that of this look.
    u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()?.checked_sub(1)
}

/// The name in parentheses may hold anything; what follows the last one is counted from the third field.
fn stat(text: &str) -> Option<Stat> {
    let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        cpu: field(14)?.saturating_add(field(15)?),
        started: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

fn boot(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "no size or number of seconds here comes near 2^53")]
fn float(value: u64) -> f64 {
    value as f64
}
