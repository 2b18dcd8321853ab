//! What of an exchange goes on record beside what is counted.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::audit::line::{bounded, rfc3339};
use crate::audit::{Arguments, Entry, Log, Slot, Stated};
use crate::edge::Cause;
use crate::identity::Principal;

/// The part of one exchange's notes that the record of calls alone wants.
pub(crate) struct Audited {
    log: Log,
    arrival: OnceLock<Arrival>,
    principal: OnceLock<Principal>,
    /// Taken before anything is done, so that the line of what was done has its place.
    slot: Mutex<Option<Slot>>,
    method: OnceLock<String>,
    stated: OnceLock<Option<Stated>>,
    arguments: OnceLock<Arguments>,
}

struct Arrival {
    reference: String,
    address: String,
    http: String,
}

impl Audited {
    pub(super) fn new(log: Log) -> Self {
        Self {
            log,
            arrival: OnceLock::new(),
            principal: OnceLock::new(),
            slot: Mutex::new(None),
            method: OnceLock::new(),
            stated: OnceLock::new(),
            arguments: OnceLock::new(),
        }
    }

    pub(crate) fn arrives(&self, reference: String, address: String, http: &http::Method) {
        let _ = self.arrival.set(Arrival { reference, address, http: bounded(http.as_str(), MOST_WORD) });
    }

    pub(super) fn comes_from(&self, principal: &Principal) -> Result<(), Cause> {
        let slot = self.log.place().ok_or(Cause::NotRecorded)?;
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = slot;
        let _ = self.principal.set(principal.clone());
        Ok(())
    }

    pub(crate) fn asks(&self, method: &str) {
        let _ = self.method.set(bounded(method, MOST_WORD));
    }

    /// What a client says that it is, as JSON.
    pub(crate) fn states(&self, info: &str) {
        let _ = self.stated.set(Stated::of(info));
    }

    /// A call's arguments, as they came.
    pub(crate) fn has_arguments(&self, bytes: &str) {
        let _ = self.arguments.set(Arguments::of(bytes, self.log.terms().arguments));
    }

    /// Records the exchange, of which the rest is said here. One without a known credential is nobody's.
    pub(super) fn end(&self, rest: Entry) {
        let (Some(principal), Some(arrival)) = (self.principal.get(), self.arrival.get()) else { return };
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.log.record(
            slot,
            Entry {
                time: rfc3339(kit::clock::since_epoch()),
                reference: arrival.reference.clone(),
                tenant: principal.tenant().to_string(),
                credential: principal.credential().to_string(),
                stated: self.stated.get().cloned().flatten(),
                address: arrival.address.clone(),
                http: arrival.http.clone(),
                method: self.method.get().cloned(),
                arguments: self.arguments.get().cloned(),
                ..rest
            },
        );
    }
}

/// Longer than any method's name.
const MOST_WORD: usize = 64;
