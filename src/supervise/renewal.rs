//! What an ACME authority gave, kept for an edge that opens no file.

use super::Supervisor;
use crate::acme::Kept;
use crate::app::words::{Down, ToEdge};
use crate::store::ChangeError;

impl Supervisor {
    /// Keeps it in its file and for the next edge, and says so.
    pub(super) fn keep_acme(&mut self, kept: Kept) {
        let Some(down) = self.edge.line() else { return };
        let (Some(begin), Some(writer)) = (self.plan.edge.begin.acme.as_mut(), self.plan.acme.clone()) else {
            let fault = Some("this service keeps nothing of an ACME authority".to_owned());
            return self.edge.say(Down::Edge(ToEdge::AcmeKept { fault }), Vec::new());
        };
        *begin.kept = kept.clone();
        self.tasks.start(async move {
            let write = move || {
                writer.change(|found| {
                    found.document = kept;
                    Ok::<_, ChangeError>(())
                })
            };
            let fault = match tokio::task::spawn_blocking(write).await {
                Ok(Ok(())) => None,
                Ok(Err(fault)) => Some(kit::chain(&fault)),
                Err(fault) => Some(fault.to_string()),
            };
            // An edge that ended meanwhile was told nothing, and begins with it all the same.
            let _ = down.send((Down::Edge(ToEdge::AcmeKept { fault }), Vec::new())).await;
        });
    }
}
