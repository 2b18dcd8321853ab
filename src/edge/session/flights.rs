//! What is under way within sessions, so that a cancellation and an operator find it.
//!
//! A worker without sessions takes the end of the exchange for the cancellation of a request; the edge ends it on the
//! client's behalf. Of a session that a worker has too, its own stream alone stands here: it ends with the session when an
//! operator ends that.

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
    /// Of a request; a stream has none.
    id: Option<RequestId>,
    cancel: watch::Sender<bool>,
}

/// A request or a stream that is under way; dropping it takes it off the table.
pub(crate) struct Flight {
    flights: Arc<Flights>,
    session: SessionId,
    serial: u64,
    cancelled: watch::Receiver<bool>,
}

impl Flights {
    /// A request. Others with the same id stand side by side: the id is the client's and routes nothing.
    pub(super) fn begin(flights: &Arc<Self>, session: SessionId, id: RequestId) -> Flight {
        Self::enter(flights, session, Some(id))
    }

    /// The session's own stream.
    pub(super) fn listen(flights: &Arc<Self>, session: SessionId) -> Flight {
        Self::enter(flights, session, None)
    }

    fn enter(flights: &Arc<Self>, session: SessionId, id: Option<RequestId>) -> Flight {
        let (cancel, cancelled) = watch::channel(false);
        let mut table = flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = table.next;
        table.next += 1;
        table.under_way.entry(session).or_default().push(Entry { serial, id, cancel });
        Flight { flights: Arc::clone(flights), session, serial, cancelled }
    }

    /// Ends the requests of `session` that go by `id`; an unknown id is nothing to worry about.
    pub(super) fn cancel(&self, session: SessionId, id: &RequestId) {
        self.signal(session, |entry| entry.id.as_ref() == Some(id));
    }

    /// Ends every request of a session. Its stream is left to the worker, which is told at the same moment.
    pub(super) fn cancel_all(&self, session: SessionId) {
        self.signal(session, |entry| entry.id.is_some());
    }

    /// Ends all that is under way within a session, of which the worker will be told later.
    pub(super) fn end_all(&self, session: SessionId) {
        self.signal(session, |_entry| true);
    }

    /// Requests under way.
    pub(super) fn count(&self) -> usize {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.under_way.values().flatten().filter(|entry| entry.id.is_some()).count()
    }

    fn signal(&self, session: SessionId, meant: impl Fn(&Entry) -> bool) {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in table.under_way.get(&session).into_iter().flatten().filter(|entry| meant(entry)) {
            entry.cancel.send_replace(true);
        }
    }
}

impl Flight {
    /// Resolves once the client has cancelled the request or its session was ended, and never otherwise.
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

    #[tokio::test]
    async fn a_stream_ends_at_an_operators_word_and_at_no_clients() {
        let flights = Arc::new(Flights::default());
        let session = SessionId::fresh().expect("an id");
        let stream = Flights::listen(&flights, session);
        flights.cancel_all(session);
        assert!(!*stream.cancelled.borrow() && flights.count() == 0);
        flights.end_all(session);
        stream.cancelled().await;
    }

    #[test]
    fn a_request_that_is_over_is_off_the_table() {
        let flights = Arc::new(Flights::default());
        let session = SessionId::fresh().expect("an id");
        drop(Flights::begin(&flights, session, RequestId::parse("1").expect("an id")));
        assert!(flights.0.lock().expect("not poisoned").under_way.is_empty());
    }
}
