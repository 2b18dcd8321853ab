//! What an edge begins with: its configuration, and the descriptors that came with it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::app::words::{BeginEdge, Handed, ToEdge};
use crate::worker::handoff::Receiver;

/// Each descriptor by its name.
#[derive(Default)]
pub(super) struct Handover {
    pub(super) tombstones: Option<[OwnedFd; 2]>,
    pub(super) monitoring: Option<OwnedFd>,
    pub(super) redirect: Option<OwnedFd>,
    pub(super) bearer: Option<OwnedFd>,
    pub(super) audit: Option<OwnedFd>,
    pub(super) audit_before: Option<OwnedFd>,
}

impl Handover {
    fn of(with: Vec<Handed>, descriptors: Vec<OwnedFd>) -> Option<Self> {
        if with.len() != descriptors.len() {
            return None;
        }
        let mut handover = Self::default();
        let mut tombstones = Vec::new();
        for (what, descriptor) in with.into_iter().zip(descriptors) {
            match what {
                Handed::Tombstones => tombstones.push(descriptor),
                Handed::Monitoring => handover.monitoring = Some(descriptor),
                Handed::Redirect => handover.redirect = Some(descriptor),
                Handed::Bearer => handover.bearer = Some(descriptor),
                Handed::Audit => handover.audit = Some(descriptor),
                Handed::AuditBefore => handover.audit_before = Some(descriptor),
            }
        }
        if !tombstones.is_empty() {
            handover.tombstones = Some(tombstones.try_into().ok()?);
        }
        Some(handover)
    }
}

/// Waits so long for the first word of the supervisor. None: it says something else, or nothing.
pub(super) async fn begin(receiver: &mut Receiver, patience: Duration) -> Option<(Box<BeginEdge>, Handover)> {
    let received = tokio::time::timeout(patience, receiver.receive::<ToEdge>()).await.ok()?.ok()??;
    match received.message {
        ToEdge::Begin { edge, with } => Some((edge, Handover::of(with, received.descriptors)?)),
        ToEdge::Worker { .. }
        | ToEdge::Opened { .. }
        | ToEdge::NotOpened { .. }
        | ToEdge::Granted { .. }
        | ToEdge::AcmeKept { .. }
        | ToEdge::AuditTurned
        | ToEdge::AuditNotTurned { .. }
        | ToEdge::AuditDisplaced
        | ToEdge::AuditNowhere { .. }
        | ToEdge::Troubles { .. }
        | ToEdge::Operate { .. }
        | ToEdge::Disabled { .. }
        | ToEdge::Reload(_)
        | ToEdge::Alive { .. }
        | ToEdge::Stop => None,
    }
}
