//! What the proxies are bounded by.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// Waits and numbers.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// How long a client may take to say what it wants, also the next time on the same connection.
    pub(super) head: Duration,
    pub(super) resolve: Duration,
    /// For all addresses of a name together.
    pub(super) connect: Duration,
    /// How long nothing may move on a connection, in neither direction.
    pub(super) idle: Duration,
    /// The same, once one side has said that it will say no more.
    pub(super) half: Duration,
    /// Connections of one tenant. One more waits in the kernel until another ends.
    pub(super) of_tenant: usize,
    /// Connections of all tenants. One more is held, and answered when another ends.
    pub(super) of_all: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
            // Long answers of models and builds come late, with nothing before.
            idle: Duration::from_secs(600),
            // What is being asked for comes within seconds; a client that was ended looks the same.
            half: Duration::from_secs(60),
            // A package manager opens a dozen or two.
            of_tenant: 64,
            of_all: a_share_of_descriptors(),
        }
    }
}

/// How many connections the proxies may have together: each takes two descriptors, and the service has other uses for
/// its own. Many tenants have to use up all of theirs before another one waits.
fn a_share_of_descriptors() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 8).unwrap_or(usize::MAX).min(2048)
}
