//! What is done to the host, as plans: pure functions of facts that were found out before.
//!
//! Each function plans one paragraph of a lifecycle; what has to be found out between two of them stands in the modules
//! that use them. A plan that finds everything as it should be is empty.

pub(super) mod files;
pub(super) mod guest;
pub(super) mod jail;
pub(super) mod piles;

use super::text::{Dataset, HostPath, Quota, Snapshot};
use crate::backend::host::{Argv, Step};

/// Makes the tenant's files. Nothing is to be undone when this fails, since nothing is this run's then.
pub(super) fn clone(template: &Snapshot, dataset: &Dataset) -> Step {
    Step::new("clone the template", zfs(["clone", template.as_str(), dataset.as_str()])).undo(destroy_argv(dataset))
}

/// Says whose the files are. By it a later run knows its own.
pub(super) fn own(dataset: &Dataset, label: &str) -> Step {
    Step::new("say on the dataset whose it is", set(dataset, OWNER, label))
}

/// Says which person the shared pile knows the tenant as.
pub(super) fn entered(dataset: &Dataset, id: &str) -> Step {
    Step::new("say on the dataset that the assistant is entered", set(dataset, PERSON, id))
}

/// Bounds the tenant's own files; what they are cloned from does not count.
pub(super) fn bound(dataset: &Dataset, quota: &Quota) -> Option<Step> {
    quota.some().map(|size| Step::new("bound what the files take up", set(dataset, "refquota", size)))
}

/// Bounds all piles together, where their folder is a dataset of its own. A parent that delegates it may not allow that.
pub(super) fn bound_piles(dataset: &Dataset, quota: &Quota) -> Option<Step> {
    quota.some().map(|size| {
        Step::new("bound what all piles take up, where that is allowed", set(dataset, "quota", size)).tolerated()
    })
}

pub(super) fn destroy(dataset: &Dataset) -> Step {
    Step::new("destroy the dataset with all files in it", destroy_argv(dataset))
}

pub(super) fn set(dataset: &Dataset, property: &str, value: &str) -> Argv {
    zfs(["set", &format!("{property}={value}"), dataset.as_str()])
}

pub(super) fn zfs<const N: usize>(words: [&str; N]) -> Argv {
    Argv::new("zfs", words).sudo()
}

fn destroy_argv(dataset: &Dataset) -> Argv {
    zfs(["destroy", dataset.as_str()])
}

/// A program with paths behind its options, as root.
fn with_paths<const N: usize>(program: &str, options: [&str; N], paths: &[&HostPath]) -> Argv {
    Argv::new(program, options).and(paths.iter().map(|path| path.as_str())).sudo()
}

/// The properties that say what the playground knows of a dataset.
pub(super) const OWNER: &str = "playground:tenant";
pub(super) const PERSON: &str = "playground:person";
pub(super) const SETTINGS: &str = "playground:settings";
pub(super) const DISABLED: &str = "playground:disabled";
