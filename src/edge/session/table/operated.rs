//! Live sessions for an operator: which there are, and the end of one at his word.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::edge::client::Client;
use crate::edge::session::live::{LiveSession, NotEnded, SessionName};
use crate::edge::session::seal::SessionId;
use crate::identity::{Catalogue, CredentialId, Principal};

use super::{Live, State, Table};

/// Who has used a session last.
#[derive(Clone)]
pub(in crate::edge::session) struct Holder {
    pub(in crate::edge::session) credential: CredentialId,
    pub(in crate::edge::session) client: Client,
    /// Said at its opening alone.
    pub(in crate::edge::session) stated: Option<String>,
}

impl Table {
    /// Writes down who has used a session.
    pub(in crate::edge::session) fn is_used_by(&self, id: SessionId, principal: &Principal, client: Client) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(live) = state.live.get_mut(&id) else { return };
        match &mut live.holder {
            Some(holder) if holder.credential == *principal.credential() => holder.client = client,
            holder => {
                let stated = holder.take().and_then(|holder| holder.stated);
                *holder = Some(Holder { credential: principal.credential().clone(), client, stated });
            }
        }
    }

    /// The same at its opening.
    pub(in crate::edge::session) fn is_opened_by(&self, id: SessionId, holder: Holder) {
        if let Some(live) = self.state.lock().unwrap_or_else(PoisonError::into_inner).live.get_mut(&id) {
            live.holder = Some(holder);
        }
    }

    /// All that are live and have an entry, by tenants and then the longest unused first.
    pub(in crate::edge::session) fn list(&self, now: Instant, today: Duration) -> Vec<LiveSession> {
        let mut all: Vec<_> = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let live = state.live.iter().filter(|(_, live)| state.is_in_time(live, now, today));
            live.filter_map(|(id, live)| live.seen(*id, now)).collect()
        };
        all.sort_by(|one, other| {
            one.tenant
                .as_str()
                .cmp(other.tenant.as_str())
                .then(other.idle.cmp(&one.idle))
                .then(one.name.cmp(&other.name))
        });
        all
    }

    /// Ends the session of this name for good: when this returns, a later edge will know it too. Its worker stands in line
    /// to be told.
    pub(in crate::edge::session) async fn end_called(
        &self,
        name: SessionName,
        now: Instant,
        today: Duration,
    ) -> (Option<SessionId>, Result<LiveSession, NotEnded>) {
        let taken = self.state.lock().unwrap_or_else(PoisonError::into_inner).take_called(name, now, today);
        let Some((id, seen, records)) = taken else { return (None, Err(NotEnded::Unknown)) };
        let recorded = match &self.tombstones {
            Some(tombstones) => tombstones.append(&records).await,
            None => Ok(()),
        };
        let ended = recorded.map(|()| seen).map_err(|fault| {
            let fault: &dyn std::error::Error = &fault;
            tracing::error!(fault, "the end of a session cannot be recorded");
            NotEnded::Unrecorded
        });
        (Some(id), ended)
    }
}

impl State {
    fn is_in_time(&self, live: &Live, now: Instant, today: Duration) -> bool {
        today < live.times.expires && now.saturating_duration_since(live.used) < self.limits.idle
    }

    fn take_called(
        &mut self,
        name: SessionName,
        now: Instant,
        today: Duration,
    ) -> Option<(SessionId, LiveSession, Vec<super::Record>)> {
        let mut called =
            self.live.iter().filter(|(id, live)| SessionName::of(**id) == name && self.is_in_time(live, now, today));
        let (id, seen) = called.next().and_then(|(id, live)| Some((*id, live.seen(*id, now)?)))?;
        // Which of two was meant is not for us to choose.
        if called.next().is_some() {
            return None;
        }
        let mut live = self.leave(id)?;
        if let Some(departed) = live.held.take() {
            self.fixed.depart(departed);
        }
        let records = self.bury(id, &live.tenant, live.times, today);
        Some((id, seen, records))
    }
}

impl Live {
    fn seen(&self, id: SessionId, now: Instant) -> Option<LiveSession> {
        let holder = self.holder.as_ref()?;
        Some(LiveSession {
            name: SessionName::of(id),
            tenant: self.tenant.clone(),
            catalogue: if self.tick.is_none() { Catalogue::Native } else { Catalogue::Sandbox },
            worker: self.worker.clone(),
            credential: holder.credential.clone(),
            stated: holder.stated.clone(),
            address: holder.client.to_string(),
            opened: self.times.issued,
            expires: self.times.expires,
            idle: now.saturating_duration_since(self.used),
        })
    }
}
