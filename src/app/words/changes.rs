//! What is another in a configuration than in the one before, in words for an operator.

use std::collections::BTreeMap;

use super::{BeginEdge, Native, Pem, Upstream};
use crate::edge::Config;

impl BeginEdge {
    /// What an edge would serve otherwise; none when nothing.
    #[must_use]
    pub fn changes(&self, fresh: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let (before, after) = (by_tenant(&self.native), by_tenant(&fresh.native));
        for (tenant, worker) in &after {
            match before.get(tenant) {
                None => changes.push(format!("worker of {tenant}: added")),
                Some(was) => {
                    changes.extend(differences(was, worker).map(|what| format!("worker of {tenant}: {what}")));
                }
            }
        }
        let removed = before.keys().filter(|tenant| !after.contains_key(*tenant));
        changes.extend(removed.map(|tenant| format!("worker of {tenant}: removed")));
        if let (Some(was), Some(sandbox)) = (&self.sandbox, &fresh.sandbox) {
            changes.extend(differences(was, sandbox).map(|what| format!("sandbox worker: {what}")));
        }
        changes.extend(certificates(&self.tls, &fresh.tls));
        if self.client_ca != fresh.client_ca {
            changes.push("authorities of clients: others".to_owned());
        }
        if self.session_keys != fresh.session_keys {
            changes.push("session keys: others".to_owned());
        }
        if self.limits != fresh.limits {
            changes.extend(limits(&self.limits, &fresh.limits));
        }
        changes
    }
}

/// What the edge answers to and how much, by the keys' own groups.
fn limits(before: &Config, after: &Config) -> impl Iterator<Item = String> {
    let mut rest = before.clone();
    let mut changes = Vec::new();
    if before.requests.hosts != after.requests.hosts {
        rest.requests.hosts.clone_from(&after.requests.hosts);
        changes.push("hosts: others".to_owned());
    }
    if before.requests.bearer_hosts != after.requests.bearer_hosts {
        rest.requests.bearer_hosts.clone_from(&after.requests.bearer_hosts);
        changes.push("bearer_hosts: others".to_owned());
    }
    if rest != *after {
        changes.push("limits: others".to_owned());
    }
    changes.into_iter()
}

fn by_tenant(native: &[Native]) -> BTreeMap<&str, &Upstream> {
    native.iter().map(|native| (native.tenant.as_str(), &native.worker)).collect()
}

fn certificates(before: &[Pem], after: &[Pem]) -> Vec<String> {
    let mut changes = Vec::new();
    for pem in after {
        match named(before, pem) {
            None => changes.push(format!("certificate {}: added", pem.name)),
            Some(was) if was.certificates != pem.certificates || was.key != pem.key => {
                changes.push(format!("certificate {}: another", pem.name));
            }
            Some(_) => {}
        }
    }
    let removed = before.iter().filter(|pem| named(after, pem).is_none());
    changes.extend(removed.map(|pem| format!("certificate {}: removed", pem.name)));
    let order = |all: &[Pem]| all.iter().map(|pem| pem.name.clone()).collect::<Vec<_>>();
    if changes.is_empty() && order(before) != order(after) {
        changes.push("certificates: another order".to_owned());
    }
    changes
}

/// The one from the same file.
fn named<'a>(all: &'a [Pem], one: &Pem) -> Option<&'a Pem> {
    all.iter().find(|pem| pem.name == one.name)
}

fn differences(was: &Upstream, is: &Upstream) -> impl Iterator<Item = &'static str> {
    let all = [
        (was.address != is.address, "another address"),
        (was.bearer != is.bearer, "another token"),
        (was.terms != is.terms, "other terms"),
    ];
    all.into_iter().filter_map(|(differs, what)| differs.then_some(what))
}
