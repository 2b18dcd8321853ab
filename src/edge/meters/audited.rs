//! What of an exchange goes on record beside what is counted.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::audit::line::{bounded, masked, rfc3339};
use crate::audit::{Arguments, Entry, Log, Slot, Stated};
use crate::edge::Cause;
use crate::edge::meters::Outcome;
use crate::identity::Principal;
use crate::oauth::Event;

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
    /// What became of a login, where nobody needs to be known.
    login: OnceLock<Event>,
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
            login: OnceLock::new(),
        }
    }

    pub(crate) fn arrives(&self, reference: String, address: String, http: &http::Method) {
        let _ = self.arrival.set(Arrival { reference, address, http: bounded(http.as_str(), MOST_WORD) });
    }

    pub(super) fn comes_from(&self, principal: &Principal) -> Result<(), Cause> {
        self.reserves()?;
        let _ = self.principal.set(principal.clone());
        Ok(())
    }

    /// Takes a place for what may be done now.
    ///
    /// # Errors
    /// When it must be recorded and cannot be.
    pub(crate) fn reserves(&self) -> Result<(), Cause> {
        let slot = self.log.place().ok_or(Cause::NotRecorded)?;
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = slot;
        Ok(())
    }

    /// Records at once that a tenant was let in whom nobody has made here.
    ///
    /// # Errors
    /// When it must be recorded and cannot be.
    pub(crate) fn meets(&self, principal: &Principal) -> Result<(), Cause> {
        let Some(arrival) = self.arrival.get() else { return Ok(()) };
        let slot = self.log.place().ok_or(Cause::NotRecorded)?;
        let entry = Entry {
            tenant: principal.tenant().to_string(),
            credential: principal.credential().to_string(),
            method: Some(FIRST_SEEN.to_owned()),
            outcome: Outcome::Ok.word(),
            ..Entry::default()
        };
        self.log.record(slot, arrival.told(entry));
        Ok(())
    }

    /// What has become of a login.
    pub(crate) fn tells_of(&self, event: Event) {
        let _ = self.login.set(event);
    }

    pub(crate) fn asks(&self, method: &str) {
        let _ = self.method.set(masked(method, MOST_WORD));
    }

    /// What a client says that it is, as JSON.
    pub(crate) fn states(&self, info: &str) {
        let _ = self.stated.set(Stated::of(info));
    }

    /// A call's arguments, as they came.
    pub(crate) fn has_arguments(&self, bytes: &str) {
        let _ = self.arguments.set(Arguments::of(bytes, self.log.terms().arguments));
    }

    /// Records the exchange, of which the rest is said here. One without a known credential is nobody's, unless it was about
    /// a login.
    pub(super) fn end(&self, rest: Entry) {
        let Some(arrival) = self.arrival.get() else { return };
        let entry = match (self.principal.get(), self.login.get()) {
            (Some(principal), _) => Entry {
                tenant: principal.tenant().to_string(),
                credential: principal.credential().to_string(),
                stated: self.stated.get().cloned().flatten(),
                method: self.method.get().cloned(),
                arguments: self.arguments.get().cloned(),
                ..rest
            },
            (None, Some(Event { what, tenant, grant, client })) => Entry {
                tenant: tenant.as_ref().map(ToString::to_string).unwrap_or_default(),
                credential: grant.as_ref().map(ToString::to_string).unwrap_or_default(),
                client: client.as_ref().map(ToString::to_string),
                method: Some(what.word().to_owned()),
                ..rest
            },
            (None, None) => return,
        };
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.log.record(slot, arrival.told(entry));
    }
}

impl Arrival {
    /// The same entry with what was known at once, and the time.
    fn told(&self, entry: Entry) -> Entry {
        Entry {
            time: rfc3339(kit::clock::since_epoch()),
            reference: self.reference.clone(),
            address: self.address.clone(),
            http: self.http.clone(),
            ..entry
        }
    }
}

/// What stands where a method does, as for what becomes of a login.
const FIRST_SEEN: &str = "(tenant first seen)";

/// Longer than any method's name.
const MOST_WORD: usize = 64;
