//! How many connections each address has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::edge::client::{Arrival, Client};

/// How many of something each address has; only addresses that have one are listed.
#[derive(Clone)]
pub(super) struct Addresses {
    counts: Arc<Mutex<HashMap<Client, usize>>>,
    most: usize,
}

/// What is counted for an address; nothing where it is exempt.
pub(super) struct Share(pub(super) Option<(Addresses, Client)>);

impl Addresses {
    pub(super) fn new(most: usize) -> Self {
        Self { counts: Arc::default(), most }
    }

    /// Takes a share of the client's address, none if it is exempt; refused if it has too many.
    pub(super) fn count(&self, arrival: Arrival) -> Option<Share> {
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

#[cfg(test)]
mod tests {
    use super::{Addresses, Share};
    use crate::edge::client::Arrival;

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
