//! Requests under way on workers without sessions, so that a cancellation finds them.
//!
//! Such a worker takes the end of the exchange for the cancellation; the edge ends it on the client's behalf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::edge::RequestId;

use super::seal::SessionId;

// At most one entry an admitted exchange, so the admission bounds it.
#[derive(Default)]
pub(super) struct Flights(Mutex<Table>);

#[derive(Default)]
struct Table {
    under_way: HashMap<SessionId, Vec<Entry>>,
    next: u64,
}

struct Entry {
    serial: u64,
    id: RequestId,
    cancel: watch::Sender<bool>,
}

/// A request that is under way; dropping it takes it off the table.
pub(crate) struct Flight {
    flights: Arc<Flights>,
    session: SessionId,
    serial: u64,
    cancelled: watch::Receiver<bool>,
}

impl Flights {
    /// Requests with the same id stand side by side: the id is the client's and routes nothing.
    pub(super) fn begin(flights: &Arc<Self>, session: SessionId, id: RequestId) -> Flight {
        let (cancel, cancelled) = watch::channel(false);
        let mut table = flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = table.next;
        table.next += 1;
        table.under_way.entry(session).or_default().push(Entry { serial, id, cancel });
        Flight { flights: Arc::clone(flights), session, serial, cancelled }
    }

    /// Ends the requests of `session` that go by `id`; an unknown id is nothing to worry about.
    pub(super) fn cancel(&self, session: SessionId, id: &RequestId) {
        self.signal(session, |entry| entry.id == *id);
    }

    pub(super) fn cancel_all(&self, session: SessionId) {
        self.signal(session, |_entry| true);
    }

    /// Requests under way.
    pub(super) fn count(&self) -> usize {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.under_way.values().map(Vec::len).sum()
    }

    fn signal(&self, session: SessionId, meant: impl Fn(&Entry) -> bool) {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in table.under_way.get(&session).into_iter().flatten().filter(|entry| meant(entry)) {
            entry.cancel.send_replace(true);
        }
    }
}

impl Flight {
    /// Resolves once the client has cancelled the request, and never otherwise.
    pub(crate) fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut cancelled = self.cancelled.clone();
        async move {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                // The flight is over, so nobody can cancel it any more.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut table = self.flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = table.under_way.get_mut(&self.session) {
            entries.retain(|entry| entry.serial != self.serial);
            if entries.is_empty() {
                table.under_way.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flights, SessionId};
    use crate::edge::RequestId;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_cancellation_reaches_every_request_of_that_session_and_id_and_no_other() {
        let flights = Arc::new(Flights::default());
        let (ours, theirs) = (SessionId::fresh().expect("an id"), SessionId::fresh().expect("an id"));
        let id = |raw| RequestId::parse(raw).expect("an id");
        let twice = [Flights::begin(&flights, ours, id("7")), Flights::begin(&flights, ours, id("7"))];
        let text = Flights::begin(&flights, ours, id("\"7\""));
        let foreign = Flights::begin(&flights, theirs, id("7"));
        flights.cancel(ours, &id("7"));
        for flight in &twice {
            flight.cancelled().await;
        }
        assert!(!*text.cancelled.borrow() && !*foreign.cancelled.borrow());
    }

    #[test]
    fn a_request_that_is_over_is_off_the_table() {
        let flights = Arc::new(Flights::default());
        let session = SessionId::fresh().expect("an id");
        drop(Flights::begin(&flights, session, RequestId::parse("1").expect("an id")));
        assert!(flights.0.lock().expect("not poisoned").under_way.is_empty());
    }
}
