//! Getting to where a command asked to go: resolved once, judged, connected.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::limits::Limits;
use super::policy::{Asked, Policy, Refusal};
use crate::sys::interfaces;

/// What all tenants' proxies share.
pub(in crate::backend::linux) struct Outside {
    pub(super) limits: Limits,
    /// Connections of all tenants.
    pub(super) connections: Arc<Semaphore>,
    names: Names,
    /// Look-ups of all tenants. Each holds a thread for as long as the system's resolver likes.
    looking_up: Arc<Semaphore>,
}

/// Who knows what a name leads to.
pub(super) enum Names {
    /// The host's resolver, with its `hosts` file.
    System,
    /// What a test says.
    #[cfg(any(test, feature = "test-door"))]
    Told(std::collections::HashMap<String, Vec<IpAddr>>),
    /// Nobody who ever answers.
    #[cfg(test)]
    Silent,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreached {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0} has no address that can be found")]
    Unknown(Asked, #[source] Option<io::Error>),
    #[error("the name in {0} could not be resolved in time")]
    ResolvedLate(Asked),
    #[error("{0} cannot be reached")]
    Failed(Asked, #[source] io::Error),
    #[error("{0} did not accept a connection in time")]
    ConnectedLate(Asked),
    #[error("this machine's own addresses cannot be found out, so nothing is connected to")]
    Blind(#[source] io::Error),
}

impl Default for Outside {
    fn default() -> Self {
        Self::new(Names::System, Limits::default())
    }
}

impl Outside {
    #[cfg(feature = "test-door")]
    pub(in crate::backend::linux) fn told(names: std::collections::HashMap<String, Vec<IpAddr>>) -> Self {
        Self::new(Names::Told(names), Limits::default())
    }

    pub(super) fn new(names: Names, limits: Limits) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(limits.of_all)),
            limits,
            names,
            looking_up: Arc::new(Semaphore::new(LOOK_UPS_OF_ALL)),
        }
    }

    /// A connection to where was asked, if the policy allows it; `looking_up` are the tenant's own look-ups.
    pub(super) async fn dial(
        &self,
        policy: &Policy,
        looking_up: &Arc<Semaphore>,
        asked: &Asked,
    ) -> Result<TcpStream, Unreached> {
        policy.admit(asked)?;
        let addresses = match asked.known() {
            Some(addresses) => addresses,
            None => timeout(self.limits.resolve, self.resolve(asked, looking_up))
                .await
                .map_err(|_late| Unreached::ResolvedLate(asked.clone()))?
                .map_err(|fault| Unreached::Unknown(asked.clone(), Some(fault)))?,
        };
        // Asked anew each time, since interfaces come and go.
        let own = interfaces::addresses().map_err(Unreached::Blind)?;
        let chosen = policy.choose(asked, &addresses, &own)?;
        self.connect(asked, &chosen).await
    }

    async fn resolve(&self, asked: &Asked, looking_up: &Arc<Semaphore>) -> io::Result<Vec<IpAddr>> {
        let name = asked.host.to_string();
        match &self.names {
            Names::System => {
                let own = Arc::clone(looking_up).acquire_owned().await.map_err(io::Error::other)?;
                let shared = Arc::clone(&self.looking_up).acquire_owned().await.map_err(io::Error::other)?;
                let looked_up = tokio::task::spawn_blocking(move || {
                    // Nobody can end a look-up, so its places are taken until it ends by itself.
                    let _places = (own, shared);
                    let found = (name.as_str(), 0).to_socket_addrs()?;
                    Ok(found.map(|address| address.ip()).take(MOST_ADDRESSES).collect())
                });
                looked_up.await.map_err(io::Error::other)?
            }
            #[cfg(any(test, feature = "test-door"))]
            Names::Told(names) => Ok(names.get(&name).cloned().unwrap_or_default()),
            #[cfg(test)]
            Names::Silent => std::future::pending().await,
        }
    }

    /// Tries one address after the other, each for its share of the time that is left.
    async fn connect(&self, asked: &Asked, addresses: &[SocketAddr]) -> Result<TcpStream, Unreached> {
        let end = kit::clock::now() + self.limits.connect;
        let mut last = Unreached::Unknown(asked.clone(), None);
        for (left, address) in (1..=addresses.len()).rev().zip(addresses) {
            let share = end.saturating_duration_since(kit::clock::now()) / u32::try_from(left).unwrap_or(u32::MAX);
            last = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // What is passed on was sent as it is; waiting for more only delays it.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(fault)) => Unreached::Failed(asked.clone(), fault),
                Err(_late) => Unreached::ConnectedLate(asked.clone()),
            };
        }
        Err(last)
    }
}

/// More addresses of one name are not tried.
const MOST_ADDRESSES: usize = 8;

/// Few enough for the runtime's threads, which do other things too, when names are slow.
const LOOK_UPS_OF_ALL: usize = 64;

/// Names are found in milliseconds. A tenant whose own name servers are slow on purpose slows its own names alone.
pub(super) const LOOK_UPS_OF_TENANT: usize = 4;
