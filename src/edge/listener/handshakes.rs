//! TLS handshakes under way, of which there are only so many.
//!
//! Who has shaken hands was here for an instant, and who never will is here the longest. So a newcomer is let in at the
//! cost of the oldest: of its own address where that has its share, and else of whichever address has the most under way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::edge::client::{Arrival, Client};

#[derive(Clone)]
pub(super) struct Handshakes {
    state: Arc<Mutex<State>>,
    most: usize,
    most_per_address: usize,
}

/// The right to shake hands; given back when it is dropped.
pub(super) struct Turn {
    handshakes: Handshakes,
    serial: u64,
    lost: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    under_way: BTreeMap<u64, Entry>,
    /// Of each address that is counted, the oldest first.
    by_address: HashMap<Client, VecDeque<u64>>,
    /// How many each address has and its oldest, so that the last is the one to go. Who shares an address with others is
    /// counted alone.
    ranks: BTreeSet<(usize, Reverse<u64>)>,
    next: u64,
}

struct Entry {
    address: Option<Client>,
    lose: watch::Sender<bool>,
}

impl Handshakes {
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        Self { state: Arc::default(), most, most_per_address: most_per_address.max(1) }
    }

    /// Lets one begin, and says whether another had to go for it that was not of its own address.
    pub(super) fn begin(&self, arrival: Arrival) -> (Turn, bool) {
        let address = (!arrival.is_shared()).then_some(arrival.client);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = address.and_then(|address| state.by_address.get(&address));
        let oldest = own.filter(|own| own.len() >= self.most_per_address).and_then(|own| own.front().copied());
        let is_full = oldest.is_none() && state.under_way.len() >= self.most;
        let goes = if is_full { state.ranks.last().map(|(_, Reverse(oldest))| *oldest) } else { oldest };
        if let Some(entry) = goes.and_then(|serial| state.leave(serial)) {
            entry.lose.send_replace(true);
        }
        let (lose, lost) = watch::channel(false);
        let serial = state.enter(Entry { address, lose });
        (Turn { handshakes: self.clone(), serial, lost }, is_full)
    }
}

impl Turn {
    /// Resolves once another was let in in its place, and never otherwise.
    pub(super) async fn lost(&mut self) {
        if self.lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl State {
    fn enter(&mut self, entry: Entry) -> u64 {
        let serial = self.next;
        self.next += 1;
        match entry.address {
            None => {
                self.ranks.insert((1, Reverse(serial)));
            }
            Some(address) => self.rank(address, |own| own.push_back(serial)),
        }
        self.under_way.insert(serial, entry);
        serial
    }

    fn leave(&mut self, serial: u64) -> Option<Entry> {
        let entry = self.under_way.remove(&serial)?;
        match entry.address {
            None => {
                self.ranks.remove(&(1, Reverse(serial)));
            }
            Some(address) => self.rank(address, |own| own.retain(|other| *other != serial)),
        }
        Some(entry)
    }

    /// Changes what an address has, and where it stands for it.
    fn rank(&mut self, address: Client, change: impl FnOnce(&mut VecDeque<u64>)) {
        let own = self.by_address.entry(address).or_default();
        if let Some(oldest) = own.front() {
            self.ranks.remove(&(own.len(), Reverse(*oldest)));
        }
        change(own);
        match own.front() {
            Some(oldest) => {
                self.ranks.insert((own.len(), Reverse(*oldest)));
            }
            None => {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.handshakes.state.lock().unwrap_or_else(PoisonError::into_inner).leave(self.serial);
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Handshakes, Turn};

    fn from(address: &str) -> Arrival {
        Arrival::of(format!("{address}:1").parse().expect("a socket address"), &[])
    }

    fn lost(turns: &[Turn]) -> Vec<bool> {
        turns.iter().map(|turn| *turn.lost.borrow()).collect()
    }

    #[test]
    fn below_the_bound_nobody_goes_and_beyond_it_the_oldest_does() {
        let handshakes = Handshakes::new(3, 2);
        let mut turns: Vec<_> =
            ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|address| handshakes.begin(from(address)).0).into();
        assert_eq!(lost(&turns), [false; 3]);
        let (turn, is_full) = handshakes.begin(from("192.0.2.4"));
        assert!(is_full);
        turns.push(turn);
        assert_eq!(lost(&turns), [true, false, false, false], "all have one");
        turns.push(handshakes.begin(from("192.0.2.5")).0);
        turns.push(handshakes.begin(from("192.0.2.6")).0);
        assert_eq!(lost(&turns), [true, true, true, false, false, false], "who shares an address is one of them");
    }

    #[test]
    fn whoever_has_the_most_under_way_loses_its_oldest() {
        let handshakes = Handshakes::new(4, 3);
        let addresses = ["192.0.2.1", "192.0.2.9", "192.0.2.9", "192.0.2.9"];
        let mut turns: Vec<_> = addresses.map(|address| handshakes.begin(from(address)).0).into();
        turns.push(handshakes.begin(from("192.0.2.2")).0);
        assert_eq!(lost(&turns), [false, true, false, false, false]);
        turns.push(handshakes.begin(from("192.0.2.3")).0);
        assert_eq!(lost(&turns), [false, true, true, false, false, false]);
    }

    #[test]
    fn an_address_with_its_share_costs_itself_and_nobody_else() {
        let handshakes = Handshakes::new(100, 2);
        let addresses = ["192.0.2.1", "192.0.2.9", "192.0.2.9", "192.0.2.9"];
        let turns: Vec<_> = addresses.map(|address| handshakes.begin(from(address))).into();
        assert!(turns.iter().all(|(_, is_full)| !is_full));
        let turns: Vec<_> = turns.into_iter().map(|(turn, _)| turn).collect();
        assert_eq!(lost(&turns), [false, true, false, false]);
        let shared: Vec<_> = (0..50).map(|_| handshakes.begin(from("127.0.0.1")).0).collect();
        assert_eq!(lost(&shared), [false; 50], "many clients may stand behind it");
    }

    #[tokio::test]
    async fn who_is_done_gives_its_place_back_and_leaves_nothing() {
        let handshakes = Handshakes::new(2, 1);
        for _ in 0..10 {
            let (one, other) = (handshakes.begin(from("192.0.2.1")).0, handshakes.begin(from("127.0.0.1")).0);
            assert_eq!(lost(&[one, other]), [false; 2]);
        }
        let (mut old, _) = handshakes.begin(from("192.0.2.1"));
        let new = handshakes.begin(from("192.0.2.1"));
        old.lost().await;
        drop((old, new));
        let state = handshakes.state.lock().expect("not poisoned");
        assert!(state.under_way.is_empty() && state.by_address.is_empty() && state.ranks.is_empty());
    }
}
