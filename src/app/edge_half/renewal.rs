//! The ACME authority, asked by the edge, and what is kept of it by the supervisor.

use std::sync::{Arc, Mutex, PoisonError};

use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

use super::Fault;
use crate::acme::{Acme, Keep};
use crate::app::words::{BeginAcme, FromEdge};
use crate::edge::redirect::Challenges;
use crate::edge::tls::Automatic;
use crate::outbound::Outbound;

/// Who waits to hear that something was kept; one thing at a time is.
#[derive(Clone, Default)]
pub(super) struct Keeping(Arc<Mutex<Option<oneshot::Sender<Option<String>>>>>);

impl Keeping {
    /// What became of it.
    pub(super) fn answer(&self, fault: Option<String>) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Who gave up waiting asks again with the next.
        let _ = waiting.map(|waiting| waiting.send(fault));
    }

    fn keep(&self, say: mpsc::Sender<FromEdge>) -> Keep {
        let keeping = self.clone();
        Box::new(move |kept| {
            let (answer, answered) = oneshot::channel();
            *keeping.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            let say = say.clone();
            Box::pin(async move {
                say.send(FromEdge::KeepAcme(Box::new(kept))).await.map_err(|_closed| ENDING.to_owned())?;
                match answered.await {
                    Ok(None) => Ok(()),
                    Ok(Some(fault)) => Err(fault),
                    Err(_dropped) => Err(ENDING.to_owned()),
                }
            })
        })
    }
}

/// Asks from now on.
pub(super) fn start(
    begin: BeginAcme,
    answers: (Automatic, Challenges),
    (keeping, say): (&Keeping, mpsc::Sender<FromEdge>),
    tasks: &Tasks,
) -> Result<(), Fault> {
    let BeginAcme { settings, kept, trust } = begin;
    let outbound = Outbound::new(&trust)?;
    let acme = Acme::new(settings, *kept, answers, outbound, keeping.keep(say));
    tasks.start(acme.run());
    Ok(())
}

const ENDING: &str = "the edge is ending";
