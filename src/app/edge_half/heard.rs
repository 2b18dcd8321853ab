//! What the supervisor says to a running edge, and whom it concerns.

use std::fs::File;
use std::io;

use tokio::sync::{mpsc, oneshot};

use super::keeping::Asked;
use super::openings::Openings;
use super::operators::Operators;
use super::record::Turns;
#[cfg(feature = "tls")]
use super::renewal;
use super::troubles::Troubles;
use crate::app::words::{BeginEdge, FromEdge, ToEdge};
use crate::worker::handoff::Receiver;
use crate::worker::{Barred, Presence};

/// Those whom it may concern.
pub(super) struct Heard {
    pub(super) presence: Presence,
    pub(super) barred: Barred,
    pub(super) openings: Openings,
    pub(super) asked: Asked,
    pub(super) reloads: mpsc::Sender<Box<BeginEdge>>,
    pub(super) turns: Turns,
    pub(super) placed: mpsc::Sender<io::Result<File>>,
    pub(super) troubles: Troubles,
    pub(super) operators: Operators,
    #[cfg(feature = "tls")]
    pub(super) renewal: renewal::Keeping,
    pub(super) say: mpsc::Sender<FromEdge>,
}

/// Does what the supervisor says, until it is gone.
pub(super) async fn listen(mut receiver: Receiver, heard: Heard, stop: oneshot::Sender<()>, gone: oneshot::Sender<()>) {
    let Heard {
        presence,
        barred,
        openings,
        asked,
        reloads,
        turns,
        placed,
        troubles,
        operators,
        #[cfg(feature = "tls")]
        renewal,
        say,
    } = heard;
    let mut stop = Some(stop);
    while let Ok(Some(received)) = receiver.receive::<ToEdge>().await {
        match received.message {
            ToEdge::Worker { up } => {
                presence.set(up);
                let _ = say.send(FromEdge::Sees { worker: up }).await;
            }
            ToEdge::Alive { round } => {
                let _ = say.send(FromEdge::Alive { round }).await;
            }
            ToEdge::Opened { id } => openings.answer(id, Ok(received.descriptors.into_iter().next())),
            ToEdge::Granted { id, done } => asked.answer(id, done),
            ToEdge::NotOpened { id, why } => openings.answer(id, Err(io::Error::other(why))),
            ToEdge::Reload(begin) => {
                if reloads.try_send(begin).is_err() {
                    let fault = Some("the edge has not taken up the last one yet".to_owned());
                    let _ = say.send(FromEdge::Reloaded { fault }).await;
                }
            }
            #[cfg(feature = "tls")]
            ToEdge::AcmeKept { fault } => renewal.answer(fault),
            #[cfg(not(feature = "tls"))]
            ToEdge::AcmeKept { .. } => {}
            ToEdge::AuditTurned => {
                let file = received.descriptors.into_iter().next();
                turns.answer(file.ok_or_else(|| io::ErrorKind::NotFound.into()));
            }
            ToEdge::AuditNotTurned { why } => turns.answer(Err(io::Error::other(why))),
            ToEdge::AuditDisplaced => {
                let file = received.descriptors.into_iter().next().map(File::from);
                // Full: the supervisor looks once a second, and the writer reads faster than that or is in trouble.
                let _ = placed.try_send(file.ok_or_else(|| io::ErrorKind::NotFound.into()));
            }
            ToEdge::AuditNowhere { why } => {
                let _ = placed.try_send(Err(io::Error::other(why)));
            }
            ToEdge::Troubles { what } => troubles.set(what),
            ToEdge::Operate { id } => operators.answer(id, received.descriptors.into_iter().next()),
            ToEdge::Disabled { tenants } => barred.set(tenants),
            ToEdge::Stop => drop(stop.take()),
            ToEdge::Begin { .. } => tracing::warn!("a second beginning is ignored"),
        }
    }
    let _ = gone.send(());
}
