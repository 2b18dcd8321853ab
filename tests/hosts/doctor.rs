//! A doctor of machines: what they do not promise is neither held against them nor said to be so.

use std::collections::BTreeMap;

use crate::machines::{ALICE, Host};
use crate::process::text;

#[test]
fn what_machines_do_not_promise_is_told_as_not_tried() {
    let Some(host) = Host::new("a doctor that tries machines") else { return };
    host.told(["user", "create", "alice"]);
    let output = host.run(["doctor", "--smoke", "alice"]);
    let said = text(&output.stdout);
    let results: BTreeMap<_, _> =
        said.lines().filter_map(|line| line.split('\t').nth(1).zip(line.split('\t').next())).collect();
    for (id, wanted) in [
        ("start", "ok"),
        ("proof", "warn"),
        ("append-only", "warn"),
        ("network", "warn"),
        ("prove-pile-append", "not-tried"),
        ("prove-pile-truncate", "not-tried"),
        ("prove-neighbour-files", "pass"),
        ("prove-network-none", "not-tried"),
        ("prove-limit-memory", "not-tried"),
        ("prove-limit-processes", "not-tried"),
        ("prove-limit-cpu", "not-tried"),
        ("prove-limit-open-files", "not-tried"),
        ("prove-limit-file-size", "not-tried"),
        ("prove-disk-quota", "not-tried"),
        ("prove-cancel-tree", "not-tried"),
        ("prove-cancel-spares", "not-tried"),
        ("prove-host-rctl", "not-tried"),
        ("prove-claims", "not-tried"),
        ("smoke-open", "ok"),
        ("smoke-exec", "ok"),
        ("smoke-read", "ok"),
        ("smoke-job", "not-tried"),
        ("smoke-cancel", "not-tried"),
        ("smoke-close", "ok"),
    ] {
        assert_eq!(results.get(id), Some(&wanted), "{id}:\n{said}\n{}", text(&output.stderr));
    }
    assert_eq!(results.get("isolation"), None, "what holds of it stands below");
    assert!(!said.contains("what goes before it failed"), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    // Nothing of its own is left.
    host.holds(&[(ALICE, "Running")]);
}
