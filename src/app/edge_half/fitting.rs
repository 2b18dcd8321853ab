//! What this process may open, and limits that keep within it.

use rustix::process::{Resource, getrlimit};

use crate::edge;
use crate::worker::Routes;

/// The same limits, lowered where they would not.
pub(super) fn fitting(mut limits: edge::Config, routes: &Routes) -> edge::Config {
    // No limit: nothing to keep within.
    let Some(descriptors) = getrlimit(Resource::Nofile).current else { return limits };
    if limits.fit(descriptors, routes.workers().count()) {
        tracing::warn!(
            descriptors,
            connections = limits.connections.most,
            exchanges = limits.exchanges.most,
            "the limits do not fit into the descriptors of this process and are lowered; raise LimitNOFILE"
        );
    }
    limits
}
