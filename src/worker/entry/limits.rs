//! The clocks and sizes that an entry sets for its worker.

use std::time::Duration;

use super::{Dialect, Entries, EntryFault, Member, Value};
use crate::spelled;
use crate::worker::terms::Bounds;

/// What an entry says of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub connect: Option<Duration>,
    pub head: Option<Duration>,
    pub idle: Option<Duration>,
    pub total: Option<Duration>,
    pub most_reply_bytes: Option<u64>,
}

impl Limits {
    /// The bounds that these make of `default`.
    #[must_use]
    pub fn over(&self, default: &Bounds) -> Bounds {
        Bounds {
            connect: self.connect.unwrap_or(default.connect),
            head: self.head.unwrap_or(default.head),
            idle: self.idle.unwrap_or(default.idle),
            total: self.total.unwrap_or(default.total),
            most_reply_bytes: self.most_reply_bytes.unwrap_or(default.most_reply_bytes),
        }
    }
}

/// How one limit is spelled, and what it may be.
struct Rule {
    json: &'static str,
    toml: &'static str,
    /// In seconds, or in bytes.
    least: u64,
    most: u64,
    bytes: bool,
    set: fn(&mut Limits, u64),
}

pub(super) fn names(dialect: Dialect) -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.name(dialect)).collect()
}

pub(super) fn read(entries: &mut Entries, dialect: Dialect, members: &[Member]) -> Limits {
    let mut limits = Limits::default();
    for rule in RULES {
        let name = rule.name(dialect);
        let Some(member) = members.iter().find(|member| member.name == name) else { continue };
        let said = match &member.node.value {
            Value::Whole(said) => Some(*said),
            Value::Text(text) if dialect == Dialect::Toml && !rule.bytes => {
                spelled::duration(text).ok().map(|time| time.as_secs())
            }
            Value::Text(_) | Value::Flag(_) | Value::Table(_) | Value::List(_) | Value::Other => None,
        };
        match said.filter(|said| (rule.least..=rule.most).contains(said)) {
            Some(said) => (rule.set)(&mut limits, said),
            None => entries.fault(member.node.at, EntryFault::Limit { name, bounds: rule.bounds(dialect) }),
        }
    }
    limits
}

impl Rule {
    fn name(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Json => self.json,
            Dialect::Toml => self.toml,
        }
    }

    fn bounds(&self, dialect: Dialect) -> String {
        let Self { least, most, .. } = self;
        match (self.bytes, dialect) {
            (true, _) => format!("a whole number of bytes from {least} to {most}"),
            (false, Dialect::Json) => format!("a whole number of seconds from {least} to {most}"),
            (false, Dialect::Toml) => format!("a time from {least}s to {most}s, such as 30s, 5m or 2h,"),
        }
    }
}

const fn clock(json: &'static str, toml: &'static str, most: u64, set: fn(&mut Limits, u64)) -> Rule {
    Rule { json, toml, least: 1, most, bytes: false, set }
}

const RULES: &[Rule] = &[
    // On loopback a connection is there at once, or the worker is not.
    clock("connect_seconds", "connect", 60, |limits, said| limits.connect = Some(Duration::from_secs(said))),
    clock("head_seconds", "head", DAY, |limits, said| limits.head = Some(Duration::from_secs(said))),
    clock("idle_seconds", "idle", DAY, |limits, said| limits.idle = Some(Duration::from_secs(said))),
    clock("total_seconds", "total", 7 * DAY, |limits, said| limits.total = Some(Duration::from_secs(said))),
    Rule {
        json: "most_reply_bytes",
        toml: "most_reply",
        // An error in JSON-RPC must fit.
        least: 1024,
        most: 1 << 30,
        bytes: true,
        set: |limits, said| limits.most_reply_bytes = Some(said),
    },
];

const DAY: u64 = 24 * 3600;
