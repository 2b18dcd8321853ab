//! Sessions of native workers: they hold their place until they end.
//!
//! Pushed out like the sandbox's, such a session would leave behind what its worker keeps for it. So a place is reserved
//! before the worker is asked, and given back when it opens nothing. A session that ends without its client, by its
//! clocks or at an operator's word, departs: its worker is to be told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use kit::Tenant;

use crate::edge::Version;
use crate::edge::session::seal::{Sealed, SessionId};
use crate::identity::Catalogue;

use super::{State, Table};

/// The places that are taken, by sessions and by those that are being opened.
#[derive(Default)]
pub(super) struct Fixed {
    // An entry exists only while its tenant holds a place, so the table is as bounded as the places are.
    by_tenant: HashMap<Tenant, usize>,
    all: usize,
    departed: VecDeque<Departed>,
    swept: Option<Instant>,
}

/// A worker's own session, of which nobody will speak again.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) worker: String,
    pub(crate) session: String,
    pub(crate) version: Version,
}

/// A place for a session that its worker has not opened yet.
pub(crate) struct Reservation {
    table: Arc<Table>,
    tenant: Tenant,
}

/// There is no place for another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Tenant { most: usize },
    All,
}

impl Fixed {
    pub(super) fn take(&mut self, tenant: &Tenant) {
        *self.by_tenant.entry(tenant.clone()).or_default() += 1;
        self.all += 1;
    }

    pub(super) fn by_tenant(&self) -> impl Iterator<Item = (&Tenant, usize)> {
        self.by_tenant.iter().map(|(tenant, own)| (tenant, *own))
    }

    /// Has the worker of a session told that it has ended.
    pub(super) fn depart(&mut self, departed: Departed) {
        if self.departed.len() < MOST_DEPARTED {
            self.departed.push_back(departed);
        }
    }

    /// Sessions of which a worker is still to be told.
    pub(super) fn waiting(&self) -> usize {
        self.departed.len()
    }

    pub(super) fn give_back(&mut self, tenant: &Tenant) {
        if let Some(own) = self.by_tenant.get_mut(tenant) {
            *own -= 1;
            self.all -= 1;
            if *own == 0 {
                self.by_tenant.remove(tenant);
            }
        }
    }
}

impl Departed {
    pub(super) fn of(session: &Sealed) -> Option<Self> {
        let native = session.catalogue == Catalogue::Native;
        let upstream = session.upstream.clone().filter(|_| native)?;
        Some(Self { worker: session.worker.clone(), session: upstream, version: session.version })
    }
}

impl Table {
    /// A place for a session of a native worker. `now` and `today` are the same moment on two clocks.
    pub(in crate::edge::session) fn reserve(
        self: &Arc<Self>,
        tenant: &Tenant,
        now: Instant,
        today: Duration,
    ) -> Result<Reservation, Full> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A refused client may ask again at once, and each look is at every session.
        let due = state.fixed.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP_PAUSE);
        if due && state.place(tenant).is_err() {
            state.sweep(now, today);
        }
        state.place(tenant)?;
        state.fixed.take(tenant);
        Ok(Reservation { table: Arc::clone(self), tenant: tenant.clone() })
    }

    /// Ends the sessions of native workers whose time is over. Their workers stand in line to be told.
    pub(in crate::edge::session) fn sweep(&self, now: Instant, today: Duration) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).sweep(now, today);
    }

    /// The next session whose worker is to be told that it has ended.
    pub(in crate::edge::session) fn departed(&self) -> Option<Departed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fixed.departed.pop_front()
    }
}

impl State {
    pub(super) fn has_room(&self, tenant: &Tenant) -> bool {
        self.place(tenant).is_ok()
    }

    fn place(&self, tenant: &Tenant) -> Result<(), Full> {
        let most = self.limits.most_per_tenant;
        if self.fixed.by_tenant.get(tenant).is_some_and(|own| *own >= most) {
            return Err(Full::Tenant { most });
        }
        if self.fixed.all >= self.limits.most { Err(Full::All) } else { Ok(()) }
    }

    fn sweep(&mut self, now: Instant, today: Duration) {
        self.fixed.swept = Some(now);
        let idle = self.limits.idle;
        let over: Vec<SessionId> = self
            .live
            .iter()
            .filter(|(_, live)| live.tick.is_none())
            .filter(|(_, live)| today >= live.times.expires || now.duration_since(live.used) >= idle)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            let Some(mut live) = self.leave(id) else { continue };
            if let Some(departed) = live.held.take() {
                self.fixed.depart(departed);
            }
            self.forget(id, live);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.table.state.lock().unwrap_or_else(PoisonError::into_inner).fixed.give_back(&self.tenant);
    }
}

/// Between two looks for sessions whose time is over.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

/// Telling is a courtesy: workers that cannot be told this fast end their sessions themselves.
const MOST_DEPARTED: usize = 4096;
