//! What is remembered of one tenant's ended sessions.

use std::collections::HashMap;
use std::time::Duration;

use kit::Tenant;

use crate::edge::session::seal::{Sealed, SessionId};
use crate::edge::session::tombstones::Record;

#[derive(Default)]
pub(super) struct Ended {
    pub(super) sessions: HashMap<SessionId, Times>,
    /// Sessions issued before it have all ended.
    pub(super) minimum: Duration,
}

#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) issued: Duration,
    pub(super) expires: Duration,
}

impl Times {
    pub(super) fn of(session: &Sealed) -> Self {
        Self { issued: session.issued, expires: session.expires }
    }
}

impl Ended {
    /// All of it that matters still.
    pub(super) fn records(&self, tenant: &Tenant, lifetime: Duration, today: Duration) -> Vec<Record> {
        let minimum =
            (self.minimum > Duration::ZERO).then(|| Record::Minimum { tenant: tenant.clone(), minimum: self.minimum });
        let sessions = self.sessions.iter().map(|(session, Times { issued, expires })| Record::Session {
            tenant: tenant.clone(),
            session: *session,
            issued: *issued,
            expires: *expires,
        });
        minimum.into_iter().chain(sessions).filter(|record| !record.is_over(lifetime, today)).collect()
    }

    /// Keeps at most so many sessions one by one; the oldest of the rest become a minimum issue time.
    pub(super) fn shrink(&mut self, most: usize) -> bool {
        let mut raised = false;
        while self.sessions.len() > most
            && let Some((oldest, issued)) =
                self.sessions.iter().min_by_key(|(_, times)| times.issued).map(|(id, times)| (*id, times.issued))
        {
            self.sessions.remove(&oldest);
            self.minimum = self.minimum.max(issued.saturating_add(Duration::from_millis(1)));
            raised = true;
        }
        raised
    }
}
