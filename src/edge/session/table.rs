//! Which sessions are alive.
//!
//! The sealed id proves that a session was given out; this table knows when it was last used and whether it has ended.
//! Its live half is bounded. For the sandbox it is only a cache: an entry that is pushed out costs the session its idle
//! clock and nothing else. A native worker keeps something for each session, so there an entry stays until its session
//! has ended, and what does not fit is refused before the worker is asked ([`fixed`]). The ended half is kept for each
//! tenant until the session would have expired anyway; past a bound it is the tenant's minimum issue time that rises,
//! which ends older sessions early rather than reviving an ended one.

mod ended;
mod fixed;
mod operated;
mod sizes;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kit::Tenant;

use crate::edge::config::Sessions as Limits;
use crate::identity::Catalogue;

use super::seal::{Sealed, SessionId};
use super::tombstones::{Record, Tombstones};

use ended::{Ended, Times};
pub(crate) use fixed::Departed;
use fixed::Fixed;
pub(super) use fixed::{Full, Reservation};
pub(super) use operated::Holder;
pub(crate) use sizes::Sizes;

pub(crate) struct Table {
    state: Mutex<State>,
    tombstones: Option<Arc<Tombstones>>,
}

/// What an earlier edge recorded cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the record of ended sessions cannot be read")]
pub(crate) struct OpenError(#[source] io::Error);

/// The end of a session cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error("the end of a session cannot be written down")]
pub(super) struct EndError(#[source] io::Error);

/// The record stays as long as it is.
#[derive(Debug, thiserror::Error)]
#[error("the record of ended sessions cannot be made smaller")]
pub(super) struct CompactError(#[source] io::Error);

#[derive(Default)]
struct State {
    limits: Limits,
    live: HashMap<SessionId, Live>,
    /// Live sessions in the order of their last use, in all and for each tenant.
    order: BTreeMap<u64, SessionId>,
    by_tenant: HashMap<Tenant, BTreeMap<u64, SessionId>>,
    next: u64,
    fixed: Fixed,
    ended: HashMap<Tenant, Ended>,
}

struct Live {
    tenant: Tenant,
    /// What its worker is called.
    worker: String,
    used: Instant,
    holder: Option<Holder>,
    /// Where it stands in the order; a fixed one stands in none.
    tick: Option<u64>,
    times: Times,
    /// What a native worker keeps for it.
    held: Option<Departed>,
}

impl Table {
    /// With what an earlier edge recorded in these files; blocking, for the start.
    pub(super) fn open(limits: Limits, files: Option<[File; 2]>, today: Duration) -> Result<Self, OpenError> {
        let mut state = State { limits: limits.clone(), ..State::default() };
        let recall = |record: Record| {
            if !record.is_over(limits.lifetime, today) {
                state.recall(record, limits.most_tombstones_per_tenant);
            }
        };
        let open = |files| Tombstones::open(files, limits.most_tombstone_bytes, recall);
        let tombstones = files.map(open).transpose().map_err(OpenError)?.map(Arc::new);
        Ok(Self { state: Mutex::new(state), tombstones })
    }

    /// Takes up other bounds; what the table holds beyond them goes as others come.
    pub(crate) fn adopt(&self, limits: Limits) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).limits = limits;
    }

    pub(super) fn lifetime(&self) -> Duration {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).limits.lifetime
    }

    pub(super) fn insert(&self, session: &Sealed, now: Instant) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).enter(session, now);
    }

    /// Whether the session is alive, which this use keeps it. `now` and `today` are the same moment on two clocks.
    pub(super) fn touch(&self, session: &Sealed, now: Instant, today: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if today >= session.expires || state.has_ended(session) {
            return false;
        }
        if state.live.get(&session.id).is_some_and(|live| now.duration_since(live.used) >= state.limits.idle) {
            return false;
        }
        if state.live.contains_key(&session.id) || !is_fixed(session) || state.has_room(&session.tenant) {
            state.enter(session, now);
        }
        // An earlier edge gave it out. Where its place is taken, the id alone keeps it, without the idle clock.
        true
    }

    /// Ends the session for good: when this returns, a later edge will know it too.
    pub(super) async fn end(&self, session: &Sealed, today: Duration) -> Result<(), EndError> {
        let records = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.leave(session.id);
            state.bury(session.id, &session.tenant, Times::of(session), today)
        };
        match &self.tombstones {
            Some(tombstones) => tombstones.append(&records).await.map_err(EndError),
            None => Ok(()),
        }
    }

    /// Resolves when the record of ended sessions has grown.
    pub(super) async fn grown(&self) {
        match &self.tombstones {
            Some(tombstones) => tombstones.grown().await,
            None => std::future::pending().await,
        }
    }

    /// Makes the record small if it is time; blocking. Nothing else waits for it: the table is held for a tenant at a time.
    pub(super) fn compact(&self, now: Instant, today: Duration) -> Result<(), CompactError> {
        let Some(tombstones) = self.tombstones.as_ref().filter(|tombstones| tombstones.begin(now)) else {
            return Ok(());
        };
        tombstones.compact(now, || self.kept(today)).map_err(CompactError)
    }

    /// What is to be remembered still of each tenant's ends, as it is when it comes to that tenant.
    fn kept(&self, today: Duration) -> impl Iterator<Item = Vec<Record>> {
        let state = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let tenants: Vec<_> = state().ended.keys().cloned().collect();
        tenants.into_iter().map(move |tenant| state().keep(&tenant, today))
    }

    #[cfg(test)]
    fn live(&self) -> usize {
        self.state.lock().expect("no test panics while it holds the table").live.len()
    }
}

impl State {
    fn enter(&mut self, session: &Sealed, now: Instant) {
        let (worker, holder) = match self.leave(session.id) {
            Some(Live { worker, holder, .. }) => (worker, holder),
            None => (session.worker.clone(), None),
        };
        let fixed = is_fixed(session);
        let own = self.by_tenant.get(&session.tenant).and_then(|own| Some((own.len(), *own.first_key_value()?.1)));
        if let Some((_, idlest)) = own.filter(|(count, _)| !fixed && *count >= self.limits.most_per_tenant) {
            self.push_out(idlest, now);
        }
        if self.live.len() >= self.limits.most {
            match self.order.first_key_value().map(|(_, id)| *id) {
                Some(idlest) => self.push_out(idlest, now),
                // Fixed ones alone; another that is none lives by its id.
                None if !fixed => return,
                None => {}
            }
        }
        let tick = if fixed {
            self.fixed.take(&session.tenant);
            None
        } else {
            let tick = self.next;
            self.next += 1;
            self.order.insert(tick, session.id);
            self.by_tenant.entry(session.tenant.clone()).or_default().insert(tick, session.id);
            Some(tick)
        };
        let (times, held) = (Times::of(session), Departed::of(session));
        let tenant = session.tenant.clone();
        self.live.insert(session.id, Live { tenant, worker, used: now, holder, tick, times, held });
    }

    fn leave(&mut self, id: SessionId) -> Option<Live> {
        let live = self.live.remove(&id)?;
        let Some(tick) = live.tick else {
            self.fixed.give_back(&live.tenant);
            return Some(live);
        };
        self.order.remove(&tick);
        if let Some(own) = self.by_tenant.get_mut(&live.tenant) {
            own.remove(&tick);
            if own.is_empty() {
                self.by_tenant.remove(&live.tenant);
            }
        }
        Some(live)
    }

    /// Makes room. A session whose idle time was over must not come back to life by being forgotten.
    fn push_out(&mut self, id: SessionId, now: Instant) {
        if let Some(live) = self.leave(id)
            && now.duration_since(live.used) >= self.limits.idle
        {
            self.forget(id, live);
        }
    }

    /// An end that nobody asked for and that is not written down.
    fn forget(&mut self, id: SessionId, live: Live) {
        let ended = self.ended.entry(live.tenant).or_default();
        ended.sessions.insert(id, live.times);
        ended.shrink(self.limits.most_tombstones_per_tenant);
    }

    fn has_ended(&self, session: &Sealed) -> bool {
        self.ended
            .get(&session.tenant)
            .is_some_and(|ended| session.issued < ended.minimum || ended.sessions.contains_key(&session.id))
    }

    /// Remembers an end, and says what must be written down for it.
    fn bury(&mut self, id: SessionId, tenant: &Tenant, times: Times, today: Duration) -> Vec<Record> {
        let ended = self.ended.entry(tenant.clone()).or_default();
        ended.sessions.retain(|_, times| times.expires > today);
        ended.sessions.insert(id, times);
        let Times { issued, expires } = times;
        let mut records = vec![Record::Session { tenant: tenant.clone(), session: id, issued, expires }];
        if ended.shrink(self.limits.most_tombstones_per_tenant) {
            records.push(Record::Minimum { tenant: tenant.clone(), minimum: ended.minimum });
        }
        records
    }

    /// What is to be remembered still of a tenant's ends; the rest is forgotten.
    fn keep(&mut self, tenant: &Tenant, today: Duration) -> Vec<Record> {
        let Some(ended) = self.ended.get_mut(tenant) else { return Vec::new() };
        ended.sessions.retain(|_, times| times.expires > today);
        let records = ended.records(tenant, self.limits.lifetime, today);
        if records.is_empty() {
            self.ended.remove(tenant);
        }
        records
    }

    fn recall(&mut self, record: Record, most: usize) {
        match record {
            Record::Session { tenant, session, issued, expires } => {
                let ended = self.ended.entry(tenant).or_default();
                ended.sessions.insert(session, Times { issued, expires });
                ended.shrink(most);
            }
            Record::Minimum { tenant, minimum } => {
                let ended = self.ended.entry(tenant).or_default();
                ended.minimum = ended.minimum.max(minimum);
            }
        }
    }
}

/// A native worker keeps something for each of its sessions.
fn is_fixed(session: &Sealed) -> bool {
    session.catalogue == Catalogue::Native
}

#[cfg(test)]
mod tests;
