//! Where connections come in, and how many there may be.
//!
//! The slot is taken before accept: at capacity clients wait in the kernel's backlog and not in our memory.

mod addresses;
mod door;
#[cfg(feature = "tls")]
mod handshakes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::tasks::Tasks;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::edge::Conversation;
use crate::edge::client::Arrival;
use crate::edge::config::Connections;
use crate::edge::network::Network;
use crate::edge::newcomers::turned_away;
use crate::edge::proxy_protocol::{self, Unintroduced};
use crate::edge::seldom::{Seldom, Tally};

pub use door::Door;

use addresses::{Addresses, Share};
use door::OpenDoor;
#[cfg(feature = "tls")]
use handshakes::Handshakes;

/// What all doors lead to.
#[derive(Clone)]
pub(crate) struct Hall {
    conversation: Conversation,
    redirecting: Conversation,
    slots: Arc<Semaphore>,
    #[cfg(feature = "tls")]
    handshakes: Handshakes,
    #[cfg(feature = "tls")]
    handshake: Duration,
    /// When clients were let go for others' handshakes.
    #[cfg(feature = "tls")]
    shaken: Seldom,
    addresses: Addresses,
    proxies: Arc<[Network]>,
    /// Where listed proxies introduce their clients, how long each may take to.
    introduction: Option<Duration>,
    newcomers: Duration,
    /// Those that did not.
    unheard: Tally,
    tasks: Tasks,
    stopping: watch::Receiver<bool>,
}

/// A connection's place: its slot, and its share of the address that it came from and of the one it speaks for.
struct Place {
    _slot: OwnedSemaphorePermit,
    _shares: [Share; 2],
}

impl Hall {
    pub(crate) fn new(
        limits: &Connections,
        (conversation, redirecting): (Conversation, Conversation),
        tasks: Tasks,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            conversation,
            redirecting,
            slots: Arc::new(Semaphore::new(limits.most)),
            #[cfg(feature = "tls")]
            handshakes: Handshakes::new(
                limits.most_handshakes.min(limits.most / 2).max(1),
                limits.most_handshakes_per_address,
            ),
            #[cfg(feature = "tls")]
            handshake: limits.handshake,
            #[cfg(feature = "tls")]
            shaken: Seldom::default(),
            addresses: Addresses::new(limits.most_per_address),
            proxies: limits.proxies.as_slice().into(),
            introduction: limits.proxy_protocol.then_some(limits.head),
            newcomers: limits.newcomers,
            unheard: Tally::default(),
            tasks,
            stopping,
        }
    }

    /// Lets connections in until the edge stops; then the listener is closed.
    pub(crate) async fn serve(self, door: OpenDoor) {
        let mut stopping = self.stopping.clone();
        let complaint = Seldom::default();
        loop {
            let next = async {
                let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
                Some((slot, door.listener.accept().await))
            };
            let (slot, accepted) = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                // The semaphore is never closed, so there is always a next one.
                next = next => match next { Some(next) => next, None => return },
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, slot, &door),
                Err(fault) if is_one_clients(&fault) => {}
                Err(fault) => {
                    // Out of descriptors or memory: accepting again at once would only spin.
                    if complaint.is_due() {
                        tracing::error!(%fault, "no connection can be accepted");
                    }
                    let _ = timeout(PAUSE, stopping.wait_for(|stopping| *stopping)).await;
                }
            }
        }
    }

    fn admit(&self, mut stream: TcpStream, peer: SocketAddr, slot: OwnedSemaphorePermit, door: &OpenDoor) {
        let arrival = Arrival::of(peer, &self.proxies);
        let Some(share) = self.share(arrival) else { return };
        // Answers are written as they come; waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let hall = self.clone();
        let (redirects, face) = (door.redirects, door.face);
        #[cfg(feature = "tls")]
        let identities = door.tls.borrow().clone();
        self.tasks.start(async move {
            let Some((arrival, introduced)) = hall.introduced(&mut stream, arrival).await else { return };
            let arrival = Arrival { face, ..arrival };
            let _place = Place { _slot: slot, _shares: [share, introduced] };
            if redirects {
                return hall.redirecting.serve(stream, arrival, None).await;
            }
            #[cfg(feature = "tls")]
            if let Some(identities) = identities {
                return hall.secure(stream, arrival, &identities).await;
            }
            hall.conversation.serve(stream, arrival, None).await;
        });
    }

    fn share(&self, arrival: Arrival) -> Option<Share> {
        let share = self.addresses.count(arrival);
        if share.is_none() {
            tracing::debug!(client = %arrival.client, "an address has too many connections");
        }
        share
    }

    /// Who a connection is of, and the share of whoever a proxy speaks for.
    async fn introduced(&self, stream: &mut TcpStream, arrival: Arrival) -> Option<(Arrival, Share)> {
        let Some(deadline) = self.introduction.filter(|_| arrival.is_proxy) else {
            return Some((arrival, Share(None)));
        };
        let mut stopping = self.stopping.clone();
        let read = tokio::select! {
            biased;
            () = turned_away(&mut stopping, self.newcomers) => return None,
            read = timeout(deadline, proxy_protocol::read(stream)) => read,
        };
        match read {
            Ok(Ok(Some(source))) => {
                let arrival = Arrival::of(source, &self.proxies);
                Some((arrival, self.share(arrival)?))
            }
            Ok(Ok(None)) => Some((arrival, Share(None))),
            Ok(Err(fault @ Unintroduced::Silent)) => {
                tracing::debug!(proxy = %arrival.client, %fault, "a proxy did not say for whom it speaks");
                None
            }
            Ok(Err(fault)) => self.unintroduced(arrival, &fault),
            Err(_late) => self.unintroduced(arrival, &"the PROXY header took too long"),
        }
    }

    /// A proxy that is not set up for this has everybody behind it closed, so it is told of though it comes often.
    fn unintroduced<T>(&self, arrival: Arrival, fault: &dyn std::fmt::Display) -> Option<T> {
        let proxy = arrival.client;
        match self.unheard.count() {
            Some(count) => tracing::warn!(
                %proxy, %fault, count,
                "proxy_protocol: connections of a listed proxy without a good PROXY header are closed"
            ),
            None => tracing::debug!(%proxy, %fault, "a proxy did not say for whom it speaks"),
        }
        None
    }

    #[cfg(feature = "tls")]
    async fn secure(&self, stream: TcpStream, arrival: Arrival, identities: &crate::edge::tls::Identities) {
        let client = arrival.client;
        // Never queued: who waits here holds a slot that a ready client could use.
        let (mut turn, was_full) = self.handshakes.begin(arrival);
        if was_full && self.shaken.is_due() {
            tracing::warn!("too many TLS handshakes are under way, and those that take longest are let go");
        }
        let mut stopping = self.stopping.clone();
        let shaken = tokio::select! {
            biased;
            () = turned_away(&mut stopping, self.newcomers) => return,
            () = turn.lost() => return tracing::debug!(%client, "a TLS handshake made room for another"),
            shaken = timeout(self.handshake, identities.accept(stream)) => shaken,
        };
        drop(turn);
        match shaken {
            Ok(Ok((stream, protocol))) => self.conversation.serve(stream, arrival, Some(protocol)).await,
            Ok(Err(fault)) => tracing::debug!(%client, %fault, "a TLS handshake failed"),
            Err(_late) => tracing::debug!(%client, "a TLS handshake took too long"),
        }
    }
}

/// A client that left while it waited in the backlog; the next one is not concerned.
fn is_one_clients(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

const PAUSE: Duration = Duration::from_millis(100);
