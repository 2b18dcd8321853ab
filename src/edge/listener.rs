//! Where connections come in, and how many there may be.
//!
//! The slot is taken before accept: at capacity clients wait in the kernel's backlog and not in our memory.

#[cfg(feature = "tls")]
mod handshakes;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kit::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::edge::client::{Arrival, Client};
use crate::edge::config::Connections;
use crate::edge::network::Network;
use crate::edge::redirect::Challenges;
use crate::edge::seldom::Seldom;
use crate::edge::{Conversation, Face, proxy_protocol};

#[cfg(feature = "tls")]
use handshakes::Handshakes;

/// A bound listener, and whether it speaks TLS.
pub struct Door {
    listener: std::net::TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<crate::edge::tls::Identities>,
    /// Where it only sends clients to another door, with what it answers certificate authorities.
    redirects: Option<Challenges>,
    face: Face,
}

pub(crate) struct OpenDoor {
    listener: TcpListener,
    redirects: bool,
    face: Face,
    /// What it speaks TLS with just now; another may be put in its place.
    #[cfg(feature = "tls")]
    tls: watch::Sender<Option<crate::edge::tls::Identities>>,
}

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
    tasks: Tasks,
    stopping: watch::Receiver<bool>,
}

/// How many of something each address has; only addresses that have one are listed.
#[derive(Clone)]
struct Addresses {
    counts: Arc<Mutex<HashMap<Client, usize>>>,
    most: usize,
}

/// A connection's place: its slot, and its share of the address that it came from and of the one it speaks for.
struct Place {
    _slot: OwnedSemaphorePermit,
    _shares: [Share; 2],
}

/// What is counted for an address; nothing where it is exempt.
struct Share(Option<(Addresses, Client)>);

impl Door {
    #[must_use]
    pub fn plain(listener: std::net::TcpListener) -> Self {
        Self {
            listener,
            #[cfg(feature = "tls")]
            tls: None,
            redirects: None,
            face: Face::default(),
        }
    }

    /// The same for tokens alone: nothing of logging in is found there, whatever the host is called.
    #[must_use]
    pub fn for_tokens_alone(self) -> Self {
        Self { face: Face::TokensAlone, ..self }
    }

    /// Serves nothing but redirects to the doors that speak TLS, and the answers to these challenges.
    #[must_use]
    pub fn redirect(listener: std::net::TcpListener, challenges: Challenges) -> Self {
        Self { redirects: Some(challenges), ..Self::plain(listener) }
    }

    pub(crate) fn challenges(&self) -> Option<Challenges> {
        self.redirects.clone()
    }

    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(listener: std::net::TcpListener, identities: crate::edge::tls::Identities) -> Self {
        Self { tls: Some(identities), ..Self::plain(listener) }
    }

    pub(crate) fn open(self) -> io::Result<OpenDoor> {
        self.listener.set_nonblocking(true)?;
        Ok(OpenDoor {
            listener: TcpListener::from_std(self.listener)?,
            redirects: self.redirects.is_some(),
            face: self.face,
            #[cfg(feature = "tls")]
            tls: watch::Sender::new(self.tls),
        })
    }
}

#[cfg(feature = "tls")]
impl OpenDoor {
    /// Where other identities can be put, if it speaks TLS.
    pub(crate) fn identities(&self) -> Option<watch::Sender<Option<crate::edge::tls::Identities>>> {
        self.tls.borrow().is_some().then(|| self.tls.clone())
    }
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
            _ = stopping.wait_for(|stopping| *stopping) => return None,
            read = timeout(deadline, proxy_protocol::read(stream)) => read,
        };
        match read {
            Ok(Ok(Some(source))) => {
                let arrival = Arrival::of(source, &self.proxies);
                Some((arrival, self.share(arrival)?))
            }
            Ok(Ok(None)) => Some((arrival, Share(None))),
            Ok(Err(fault)) => {
                tracing::debug!(proxy = %arrival.client, %fault, "a proxy did not say for whom it speaks");
                None
            }
            Err(_late) => {
                tracing::debug!(proxy = %arrival.client, "a proxy took too long to say for whom it speaks");
                None
            }
        }
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
            _ = stopping.wait_for(|stopping| *stopping) => return,
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

impl Addresses {
    fn new(most: usize) -> Self {
        Self { counts: Arc::default(), most }
    }

    /// Takes a share of the client's address, none if it is exempt; refused if it has too many.
    fn count(&self, arrival: Arrival) -> Option<Share> {
        if arrival.is_shared() {
            return Some(Share(None));
        }
        let client = arrival.client;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share(Some((self.clone(), client))))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((addresses, client)) = &self.0 else { return };
        let mut counts = addresses.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(client);
            }
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

#[cfg(test)]
mod tests {
    use super::{Addresses, Arrival, Share};

    fn client(address: &str) -> Arrival {
        let proxies = ["192.0.2.9".parse().expect("a network")];
        Arrival::of(address.parse().expect("a socket address"), &proxies)
    }

    #[test]
    fn an_address_gets_its_connections_and_not_one_more() {
        let addresses = Addresses::new(2);
        for [one, two, more, other] in [
            ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "192.0.2.2:1"],
            ["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "[2001:db8:0:1::1]:1"],
        ] {
            let (first, second) = (addresses.count(client(one)), addresses.count(client(two)));
            assert!(first.is_some() && second.is_some());
            assert!(addresses.count(client(more)).is_none());
            assert!(addresses.count(client(other)).is_some());
            drop(first);
            assert!(addresses.count(client(more)).is_some(), "one has ended");
        }
        assert!(addresses.counts.lock().expect("not poisoned").is_empty(), "who has none is not listed");
    }

    #[test]
    fn loopback_and_listed_proxies_are_not_counted() {
        let addresses = Addresses::new(2);
        for _ in 0..5 {
            assert!(matches!(addresses.count(client("127.0.0.1:1")), Some(Share(None))));
            assert!(matches!(addresses.count(client("192.0.2.9:1")), Some(Share(None))));
        }
    }
}
