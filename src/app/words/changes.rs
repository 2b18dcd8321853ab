//! What is another in a configuration than in the one before, in words for an operator.

use std::collections::BTreeMap;

use super::{BeginEdge, Native, Upstream};

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
        if let (Some(was), Some(tls)) = (&self.tls, &fresh.tls)
            && (was.certificates != tls.certificates || was.key != tls.key)
        {
            changes.push("certificate: another".to_owned());
        }
        if self.session_keys != fresh.session_keys {
            changes.push("session keys: others".to_owned());
        }
        if self.limits != fresh.limits {
            changes.push("limits: others".to_owned());
        }
        changes
    }
}

fn by_tenant(native: &[Native]) -> BTreeMap<&str, &Upstream> {
    native.iter().map(|native| (native.tenant.as_str(), &native.worker)).collect()
}

fn differences(was: &Upstream, is: &Upstream) -> impl Iterator<Item = &'static str> {
    let all = [
        (was.address != is.address, "another address"),
        (was.bearer != is.bearer, "another token"),
        (was.terms != is.terms, "other terms"),
    ];
    all.into_iter().filter_map(|(differs, what)| differs.then_some(what))
}
