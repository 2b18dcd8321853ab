//! What a running service says of itself at its socket for monitoring.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::exposition::Exposition;
use crate::admin::operator;
use crate::cli::token::rfc3339;

pub(super) struct Running {
    ready: Value,
    numbers: Exposition,
}

impl Running {
    /// None where nobody answers; blocking.
    pub(super) fn ask(socket: &Path) -> Option<Self> {
        let ready = serde_json::from_str(&get(socket, "/readyz")?).ok()?;
        Some(Self { ready, numbers: Exposition::parse(&get(socket, "/metrics")?) })
    }

    /// Why it does not serve, where it does not.
    pub(super) fn reasons(&self) -> Vec<String> {
        let reasons = self.ready.get("reasons").and_then(Value::as_array);
        reasons.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What is wrong though it serves.
    pub(super) fn troubles(&self) -> Vec<String> {
        let troubles = self.ready.get("troubles").and_then(Value::as_array);
        let told = troubles.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let silent = (self.ready.get("audit") == Some(&Value::Bool(false)))
            .then(|| "the record of calls cannot be written".to_owned());
        told.chain(silent).collect()
    }

    pub(super) fn missing_workers(&self) -> impl Iterator<Item = String> {
        self.workers().filter(|(_, is_up)| !is_up).map(|(name, _)| name)
    }

    /// By the file or name that each is known by, and when it ends, since the Unix epoch.
    pub(super) fn certificates(&self) -> impl Iterator<Item = (String, Duration)> {
        let found = self.numbers.all("playground_certificate_expiry_timestamp_seconds");
        found.map(|sample| (sample.labels().join(", "), sample.seconds()))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let count = |name: &str| self.numbers.one(name).map_or_else(|| "-".to_owned(), |count| count.to_string());
        let mut lines = vec![
            format!("calls\t{}\tof {}", count("playground_exchanges_in_flight"), count("playground_exchanges_limit")),
            format!("connections\t{}", count("playground_connections")),
        ];
        lines.extend(self.sessions().map(|(tenant, kind, count)| format!("sessions\t{tenant}\t{kind}\t{count}")));
        lines.extend(self.workers().map(|(name, up)| format!("worker\t{name}\t{}", if up { "up" } else { "down" })));
        lines.extend(self.certificates().map(|(name, end)| format!("certificate\t{name}\tends {}", rfc3339(end))));
        lines
    }

    pub(super) fn object(&self) -> Value {
        let sessions =
            self.sessions().map(|(tenant, kind, count)| json!({ "tenant": tenant, "kind": kind, "count": count }));
        let certificates = self.certificates().map(|(name, end)| json!({ "name": name, "ends": rfc3339(end) }));
        json!({
            "ready": self.ready,
            "calls": self.numbers.one("playground_exchanges_in_flight"),
            "most_calls": self.numbers.one("playground_exchanges_limit"),
            "connections": self.numbers.one("playground_connections"),
            "sessions": sessions.collect::<Vec<_>>(),
            "certificates": certificates.collect::<Vec<_>>(),
        })
    }

    fn sessions(&self) -> impl Iterator<Item = (String, String, u64)> {
        self.numbers
            .all("playground_sessions")
            .map(|sample| (sample.label("tenant").to_owned(), sample.label("kind").to_owned(), sample.whole()))
    }

    fn workers(&self) -> impl Iterator<Item = (String, bool)> {
        let workers = self.ready.get("workers").and_then(Value::as_array).into_iter().flatten();
        workers.map(|worker| {
            let text = |name: &str| worker.get(name).and_then(Value::as_str);
            let name = text("worker").unwrap_or("?");
            let name = text("tenant").map_or_else(|| name.to_owned(), |tenant| format!("{name} of {tenant}"));
            (name, worker.get("up").and_then(Value::as_bool).unwrap_or(false))
        })
    }
}

/// The page of a path, whatever its status.
fn get(socket: &Path, path: &str) -> Option<String> {
    let mut stream = UnixStream::from(operator::connect(socket).ok()?);
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 ").then(|| body.to_owned())
}

/// It answers at once, or is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);

/// A line for each tenant and worker, and more than anyone has of those.
const MOST_BYTES: u64 = 16 << 20;
