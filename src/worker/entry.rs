//! One native worker as an operator writes it, in a manifest or as a `[[worker]]` of `playground.toml`.
//!
//! Both have the same members under the same rules; they differ in how a limit is spelled. Every fault of an entry is
//! found, each with the place of the value it is about.

mod fault;
mod limits;
mod node;

use std::collections::HashSet;
use std::path::PathBuf;

use kit::Tenant;

use super::address::Loopback;
use super::endpoint::Endpoint;
use super::terms::{Bounds, Bridge, Terms};

pub(crate) use fault::place;
pub use fault::{EntryFault, Found, Placed};
pub use limits::Limits;
pub(crate) use node::{Member, Node, Value};

/// An entry without faults. What its token file holds is not looked at here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub tenant: Tenant,
    pub address: Loopback,
    pub token_file: PathBuf,
    /// For logs and metrics.
    pub name: Option<String>,
    pub path: Endpoint,
    pub bridge: Bridge,
    pub shared_catalogue: bool,
    pub limits: Limits,
    /// Where its token file is named, in bytes from the start of the text.
    pub token_at: usize,
}

/// How a limit is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `"head_seconds": 60`
    Json,
    /// `head = "1m"`
    Toml,
}

/// Reads the entries of one text, which must be distinct.
#[derive(Debug)]
pub(crate) struct Entries {
    dialect: Dialect,
    tenants: HashSet<Tenant>,
    addresses: HashSet<Loopback>,
    names: HashSet<String>,
    pub(crate) faults: Vec<Found>,
}

impl Entry {
    /// The least that an entry says.
    #[must_use]
    pub fn new(tenant: Tenant, address: Loopback, token_file: PathBuf) -> Self {
        Self {
            tenant,
            address,
            token_file,
            name: None,
            path: Endpoint::default(),
            bridge: Bridge::default(),
            shared_catalogue: false,
            limits: Limits::default(),
            token_at: 0,
        }
    }

    /// What it is served on, where it says nothing as `default` has it.
    #[must_use]
    pub fn terms(&self, default: &Bounds) -> Terms {
        Terms {
            name: self.name.clone(),
            path: self.path.clone(),
            bridge: self.bridge,
            shared_catalogue: self.shared_catalogue,
            bounds: self.limits.over(default),
        }
    }
}

impl Entries {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, tenants: HashSet::new(), addresses: HashSet::new(), names: HashSet::new(), faults: Vec::new() }
    }

    /// One entry; none where something is wrong with it.
    pub(crate) fn read(&mut self, node: &Node) -> Option<Entry> {
        let Value::Table(members) = &node.value else {
            self.fault(node.at, EntryFault::NotAWorker);
            return None;
        };
        let before = self.faults.len();
        self.names(members, MEMBERS);
        let tenant = self.required(node, members, "tenant").and_then(|(at, text)| {
            let tenant = self.parsed(at, Tenant::parse(text), EntryFault::Tenant)?;
            let is_new = self.tenants.insert(tenant.clone());
            self.distinct(at, is_new, || EntryFault::TenantTwice(tenant.clone()));
            Some(tenant)
        });
        let address = self.required(node, members, "address").and_then(|(at, text)| {
            let address = self.parsed(at, Loopback::parse(text), EntryFault::Address)?;
            let is_new = self.addresses.insert(address);
            self.distinct(at, is_new, || EntryFault::AddressTwice(address));
            Some(address)
        });
        let token = self.required(node, members, "token_file").and_then(|(at, text)| {
            let named = !text.is_empty();
            self.parsed(at, if named { Ok((at, PathBuf::from(text))) } else { Err(EntryFault::NoTokenFile) }, |it| it)
        });
        let name = self.text(members, "name").and_then(|(at, text)| {
            let text = if is_name(text) { Ok(text.to_owned()) } else { Err(EntryFault::Name) };
            let name = self.parsed(at, text, |fault| fault)?;
            let is_new = self.names.insert(name.clone());
            self.distinct(at, is_new, || EntryFault::NameTwice(name.clone()));
            Some(name)
        });
        let path =
            self.text(members, "path").and_then(|(at, text)| self.parsed(at, Endpoint::parse(text), EntryFault::Path));
        let bridge = self.text(members, "bridge").and_then(|(at, text)| {
            let bridge = match text {
                "refuse" => Ok(Bridge::Refuse),
                "modern" => Ok(Bridge::Modern),
                other => Err(EntryFault::Bridge(other.chars().take(MOST_NAME).collect())),
            };
            self.parsed(at, bridge, |fault| fault)
        });
        let shared_catalogue = self.flag(members, "shared_catalogue");
        let limits = members.iter().find(|member| member.name == "limits");
        let limits = limits.map(|member| self.limits(&member.node)).unwrap_or_default();
        let (token_at, token_file) = token?;
        let entry = Entry {
            tenant: tenant?,
            address: address?,
            token_file,
            name,
            path: path.unwrap_or_default(),
            bridge: bridge.unwrap_or_default(),
            shared_catalogue: shared_catalogue.unwrap_or(false),
            limits,
            token_at,
        };
        (self.faults.len() == before).then_some(entry)
    }

    pub(crate) fn fault(&mut self, at: usize, fault: EntryFault) {
        self.faults.push(Found { at, fault });
    }

    /// The limits of an entry, or those that stand for every entry which says nothing of its own.
    pub(crate) fn limits(&mut self, node: &Node) -> Limits {
        let Value::Table(members) = &node.value else {
            self.fault(node.at, EntryFault::Kind { name: "limits", wanted: "a table of limits" });
            return Limits::default();
        };
        self.names(members, &limits::names(self.dialect));
        limits::read(self, self.dialect, members)
    }

    /// Members that nobody knows, and those that stand twice.
    pub(crate) fn names(&mut self, members: &[Member], known: &[&'static str]) {
        for (index, member) in members.iter().enumerate() {
            if !known.contains(&member.name.as_str()) {
                self.fault(member.at, EntryFault::unknown(&member.name, known));
            } else if members.iter().take(index).any(|before| before.name == member.name) {
                self.fault(member.at, EntryFault::Twice(member.name.clone()));
            }
        }
    }

    fn required<'a>(&mut self, node: &Node, members: &'a [Member], name: &'static str) -> Option<(usize, &'a str)> {
        if !members.iter().any(|member| member.name == name) {
            self.fault(node.at, EntryFault::Absent(name));
        }
        self.text(members, name)
    }

    fn text<'a>(&mut self, members: &'a [Member], name: &'static str) -> Option<(usize, &'a str)> {
        let node = &members.iter().find(|member| member.name == name)?.node;
        if let Value::Text(text) = &node.value {
            return Some((node.at, text));
        }
        self.fault(node.at, EntryFault::Kind { name, wanted: "a text in quotes" });
        None
    }

    fn flag(&mut self, members: &[Member], name: &'static str) -> Option<bool> {
        let node = &members.iter().find(|member| member.name == name)?.node;
        if let Value::Flag(flag) = node.value {
            return Some(flag);
        }
        self.fault(node.at, EntryFault::Kind { name, wanted: "true or false" });
        None
    }

    fn parsed<T, E>(&mut self, at: usize, parsed: Result<T, E>, fault: impl FnOnce(E) -> EntryFault) -> Option<T> {
        parsed.map_err(|found| self.fault(at, fault(found))).ok()
    }

    fn distinct(&mut self, at: usize, is_new: bool, fault: impl FnOnce() -> EntryFault) {
        if !is_new {
            self.fault(at, fault());
        }
    }
}

/// What can stand in a log line and as a label without being quoted.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=MOST_NAME).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

const MEMBERS: &[&str] = &["tenant", "address", "token_file", "path", "name", "bridge", "shared_catalogue", "limits"];

/// Labels of metrics are kept for each worker.
const MOST_NAME: usize = 64;

#[cfg(test)]
mod tests;
