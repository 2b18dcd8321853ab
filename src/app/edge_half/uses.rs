//! Which credentials were used in this hour, told to the supervisor, who writes it down.
//!
//! The first use is told at once, and what follows once a minute: a request waits for none of it. What was used in the
//! last minute of an edge may be missing.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kit::Secret;
use tokio::sync::{Notify, mpsc};

use crate::app::words::FromEdge;
use crate::edge::Authority;
use crate::identity::store::Verdict;
use crate::identity::store::last_used::{MOST, hour};
use crate::identity::{CredentialId, Principal};

/// An authority whose answers are noted.
pub(super) struct Noting {
    authority: Arc<dyn Authority>,
    uses: Uses,
}

/// What was used; clones note together.
#[derive(Clone, Default)]
pub(super) struct Uses(Arc<Inner>);

#[derive(Default)]
struct Inner {
    known: Mutex<Known>,
    news: Notify,
}

#[derive(Default)]
struct Known {
    hour: u64,
    /// In this hour, and whether it has been told.
    used: HashMap<CredentialId, bool>,
}

impl Noting {
    pub(super) fn new(authority: Arc<dyn Authority>, uses: Uses) -> Self {
        Self { authority, uses }
    }
}

impl Authority for Noting {
    fn authenticate<'a>(&'a self, presented: &'a Secret) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            let verdict = self.authority.authenticate(presented).await;
            if let Verdict::Known(principal) = &verdict {
                self.uses.note(principal.credential(), hour(kit::clock::since_epoch()));
            }
            verdict
        })
    }

    fn revoked(&self, principal: &Principal) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.authority.revoked(principal)
    }
}

impl Uses {
    fn note(&self, id: &CredentialId, now: u64) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.hour != now {
            // What was not told is lost but for the hour before, which nobody will miss.
            *known = Known { hour: now, used: HashMap::new() };
        }
        if known.used.len() < MOST && !known.used.contains_key(id) {
            known.used.insert(id.clone(), false);
            self.0.news.notify_one();
        }
    }

    /// Tells, for ever.
    pub(super) async fn tell(self, say: mpsc::Sender<FromEdge>, pause: Duration) {
        loop {
            self.0.news.notified().await;
            let (ids, hour) = self.untold();
            if !ids.is_empty() && say.send(FromEdge::Used { ids, hour }).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn untold(&self) -> (Vec<CredentialId>, u64) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = Vec::new();
        for (id, is_told) in known.used.iter_mut().filter(|(_, is_told)| !**is_told) {
            *is_told = true;
            ids.push(id.clone());
        }
        (ids, known.hour)
    }
}

/// Between two messages.
pub(super) const PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::{MOST, Uses};
    use crate::app::words::FromEdge;
    use crate::identity::CredentialId;

    #[tokio::test]
    async fn each_credential_is_told_once_an_hour_and_all_of_a_pause_together() {
        let uses = Uses::default();
        let (say, mut said) = mpsc::channel(8);
        let tasks = kit::tasks::Tasks::new();
        tasks.start(uses.clone().tell(say, Duration::ZERO));
        let mut told = async || {
            let Some(FromEdge::Used { mut ids, hour }) = said.recv().await else { panic!("nothing more is told") };
            ids.sort();
            (ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), hour)
        };
        let note = |id: &str, hour| uses.note(&CredentialId::new(id), hour);
        note("a", 1);
        assert_eq!(told().await, ("a".to_owned(), 1), "the first at once");
        for id in ["a", "b", "c", "b"] {
            note(id, 1);
        }
        assert_eq!(told().await, ("b c".to_owned(), 1));
        note("a", 2);
        assert_eq!(told().await, ("a".to_owned(), 2));
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let uses = Uses::default();
        for number in 0..=MOST {
            uses.note(&CredentialId::new(format!("id-{number}")), 1);
        }
        assert_eq!(uses.untold().0.len(), MOST);
    }
}
