//! Operators who ask the edge about its sessions, each on a connection that the supervisor has handed on.

use std::os::fd::OwnedFd;

use kit::tasks::Tasks;
use tokio::sync::{mpsc, oneshot};

use crate::admin::talk::Answering;
use crate::admin::words::{Answer, Refusal, Request};
use crate::app::words::FromEdge;
use crate::edge::{NotEnded, SessionName, Wish};

/// Whoever answers them.
#[derive(Clone)]
pub(super) struct Operators {
    wish: mpsc::Sender<Wish>,
    say: mpsc::Sender<FromEdge>,
    tasks: Tasks,
}

impl Operators {
    pub(super) fn new(wish: mpsc::Sender<Wish>, say: mpsc::Sender<FromEdge>, tasks: Tasks) -> Self {
        Self { wish, say, tasks }
    }

    /// Answers one to the end of the conversation, and says when that is over.
    pub(super) fn answer(&self, id: u64, connection: Option<OwnedFd>) {
        let (wish, say) = (self.wish.clone(), self.say.clone());
        self.tasks.start(async move {
            if let Some(connection) = connection {
                converse(&wish, connection).await;
            }
            let _ = say.send(FromEdge::Done { id }).await;
        });
    }
}

async fn converse(wish: &mpsc::Sender<Wish>, connection: OwnedFd) {
    let (mut answering, request) = match Answering::begin(connection).await {
        Ok(begun) => begun,
        Err(fault) => return tracing::debug!(%fault, "an operator's question ended early"),
    };
    let answers = if let Request::EndSession { session } = request {
        vec![end(wish, session).await]
    } else if request == Request::Sessions {
        list(wish).await
    } else {
        vec![Answer::refused(Refusal::Failed, "the edge is asked about sessions alone")]
    };
    for answer in answers {
        if let Err(fault) = answering.say(&answer, &[]).await {
            return tracing::debug!(%fault, "an operator does not hear the answer");
        }
    }
}

/// In pieces, so that a full table is no message beyond its bound.
async fn list(wish: &mpsc::Sender<Wish>) -> Vec<Answer> {
    let (tell, told) = oneshot::channel();
    let asked = wish.send(Wish::List(tell)).await;
    let Some(all) = (if asked.is_ok() { told.await.ok() } else { None }) else { return vec![ending()] };
    if all.is_empty() {
        return vec![Answer::Sessions { sessions: all, more: false }];
    }
    let pieces = all.len().div_ceil(PIECE);
    let numbered = all.chunks(PIECE).enumerate();
    numbered.map(|(at, piece)| Answer::Sessions { sessions: piece.to_vec(), more: at + 1 < pieces }).collect()
}

async fn end(wish: &mpsc::Sender<Wish>, session: SessionName) -> Answer {
    let (tell, told) = oneshot::channel();
    if wish.send(Wish::End(session, tell)).await.is_err() {
        return ending();
    }
    match told.await {
        Ok(Ok(ended)) => {
            tracing::info!(session = %ended.name, tenant = %ended.tenant, "an operator has ended a session");
            Answer::SessionEnded(Box::new(ended))
        }
        Ok(Err(why @ NotEnded::Unknown)) => Answer::refused(Refusal::NoSuchSession, format!("{session}: {why}")),
        Ok(Err(why @ NotEnded::Unrecorded)) => Answer::refused(Refusal::Failed, format!("{session}: {why}")),
        Err(_) => ending(),
    }
}

fn ending() -> Answer {
    Answer::refused(Refusal::Failed, "the edge is ending")
}

/// Some hundreds of bytes each, of a message that may have four million.
const PIECE: usize = 1024;
