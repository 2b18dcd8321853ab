//! The OAuth state, read from a descriptor and changed by the supervisor.
//!
//! ```text
//! change ─ forbidden by what stands there? ─ no ─> FromEdge::Grant ─> the supervisor, under the lock ─> ToEdge::Granted
//! view   ─ another file now? ─ FromEdge::Open ─> ToEdge::Opened
//! ```
//!
//! Each view looks at the file first, so whoever was answered sees what was changed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::app::words::FromEdge;
use crate::oauth::keeper::{Keeper, Unkept};
use crate::oauth::state::{Change, Outcome, View};
use crate::store::Watched;

type Done = Result<Outcome, Unkept>;

/// The changes that wait for the supervisor's answer.
#[derive(Clone)]
pub(super) struct Asked {
    waiting: Arc<Mutex<Waiting>>,
    room: Arc<Semaphore>,
    say: mpsc::Sender<FromEdge>,
    /// How long an answer may take.
    wait: Duration,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, oneshot::Sender<Done>>,
}

/// The state as an edge keeps it.
pub(super) struct Keeping {
    asked: Asked,
    state: Watched<View>,
}

impl Asked {
    pub(super) fn new(say: mpsc::Sender<FromEdge>) -> Self {
        Self { waiting: Arc::default(), room: Arc::new(Semaphore::new(MOST_CHANGES)), say, wait: WAIT }
    }

    /// A change goes on when nobody waits for it any more; its answer is then let go.
    async fn ask(&self, change: Change) -> Done {
        let Ok(_place) = self.room.try_acquire() else { return Err(Unkept::Busy { most: MOST_CHANGES }) };
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.answers.retain(|_, answer| !answer.is_closed());
            waiting.next = waiting.next.wrapping_add(1);
            let id = waiting.next;
            waiting.answers.insert(id, answer);
            id
        };
        let asked = async {
            self.say.send(FromEdge::Grant { id, change: Box::new(change) }).await.ok()?;
            answered.await.ok()
        };
        match tokio::time::timeout(self.wait, asked).await {
            Ok(Some(done)) => done,
            Ok(None) | Err(_) => Err(Unkept::Late { seconds: self.wait.as_secs() }),
        }
    }

    pub(super) fn answer(&self, id: u64, done: Done) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(done);
        }
    }
}

impl Keeping {
    pub(super) fn new(asked: Asked, state: Watched<View>) -> Self {
        Self { asked, state }
    }

    pub(super) async fn keep_fresh(&self, every: Duration) {
        self.state.keep_fresh(every).await;
    }

    /// As it was read last; cheap, and asks nobody.
    pub(super) fn last(&self) -> Arc<View> {
        self.state.view()
    }

    pub(super) fn generations(&self) -> watch::Receiver<u64> {
        self.state.generations()
    }
}

impl Keeper for Keeping {
    fn view(&self) -> Pin<Box<dyn Future<Output = Arc<View>> + Send + '_>> {
        Box::pin(async move {
            self.state.refresh().await;
            self.state.view()
        })
    }

    fn change(&self, change: Change) -> Pin<Box<dyn Future<Output = Done> + Send + '_>> {
        Box::pin(async move {
            match self.view().await.forbids(&change) {
                Some(denied) => Err(denied.into()),
                None => self.asked.ask(change).await,
            }
        })
    }
}

/// Each writes the file once, which takes some milliseconds: more than these would wait for seconds.
const MOST_CHANGES: usize = 64;

/// A client gives up about then.
const WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Asked, MOST_CHANGES, Unkept};
    use crate::app::words::FromEdge;
    use crate::oauth::state::{Change, Fresh, Outcome, Presented, Revocation};

    fn change() -> Change {
        let token = Fresh::access().unwrap().secret;
        Change::Revoke(Revocation { presented: Presented::of(&token), client: None })
    }

    #[tokio::test]
    async fn each_answer_reaches_who_asked_for_it() {
        let (say, mut said) = tokio::sync::mpsc::channel(2);
        let asked = Asked::new(say);
        let supervisor = async {
            let mut ids = Vec::new();
            for _ in 0..2 {
                let Some(FromEdge::Grant { id, .. }) = said.recv().await else { panic!("a change is asked for") };
                ids.push(id);
            }
            asked.answer(ids[1], Ok(Outcome::Registered));
            asked.answer(ids[0], Ok(Outcome::Revoked { grant: None }));
            asked.answer(ids[0], Ok(Outcome::Registered));
        };
        let (first, second, ()) = tokio::join!(asked.ask(change()), asked.ask(change()), supervisor);
        assert_eq!((first, second), (Ok(Outcome::Revoked { grant: None }), Ok(Outcome::Registered)));
    }

    #[tokio::test]
    async fn a_supervisor_that_does_not_answer_is_not_waited_for_and_its_places_come_back() {
        let (say, said) = tokio::sync::mpsc::channel(2 * MOST_CHANGES);
        let patient = Asked::new(say);
        // Those that are let go before have a wait that does not matter.
        let asked = Asked { wait: Duration::ZERO, ..patient.clone() };
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..MOST_CHANGES {
            let asked = patient.clone();
            waiting.spawn(async move { asked.ask(change()).await });
        }
        while said.len() < MOST_CHANGES {
            tokio::task::yield_now().await;
        }
        assert_eq!(asked.ask(change()).await, Err(Unkept::Busy { most: MOST_CHANGES }));
        waiting.shutdown().await;
        assert_eq!(asked.ask(change()).await, Err(Unkept::Late { seconds: 0 }), "there is room again");
        assert_eq!(asked.ask(change()).await, Err(Unkept::Late { seconds: 0 }), "and what gave up keeps none");
    }
}
