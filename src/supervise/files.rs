//! Files of the state that the edge may not open itself: opened here, and handed on.

use rustix::fs::{Mode, OFlags};

use super::Supervisor;
use crate::app::words::{Down, Stored, ToEdge};

impl Supervisor {
    pub(super) fn open_store(&mut self, id: u64, file: Stored) {
        let Some(down) = self.edge.line() else { return };
        let path = match (file, &self.plan.oauth) {
            (Stored::Credentials, _) => self.plan.credentials.clone(),
            (Stored::OAuth, Some(oauth)) => oauth.path().to_owned(),
            (Stored::OAuth, None) => return,
        };
        self.tasks.start(async move {
            let opened = tokio::task::spawn_blocking(move || {
                // Not waiting for a writer, should it be a pipe: the reader refuses what is no regular file.
                rustix::fs::open(
                    &path,
                    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
                    Mode::empty(),
                )
            });
            let answer = match opened.await {
                Ok(Ok(file)) => (ToEdge::Opened { id }, vec![file]),
                Ok(Err(rustix::io::Errno::NOENT)) => (ToEdge::Opened { id }, Vec::new()),
                Ok(Err(fault)) => (ToEdge::NotOpened { id, why: fault.to_string() }, Vec::new()),
                Err(fault) => (ToEdge::NotOpened { id, why: fault.to_string() }, Vec::new()),
            };
            // An edge that ended meanwhile will ask again when it is back.
            let _ = down.send((Down::Edge(answer.0), answer.1)).await;
        });
    }

    /// The file that the record of calls goes on in.
    pub(super) fn turn_audit(&mut self) {
        let (Some(down), Some(record)) = (self.edge.line(), self.recorded.record().cloned()) else { return };
        self.tasks.start(async move {
            let answer = match tokio::task::spawn_blocking(move || record.turn()).await {
                Ok(Ok(file)) => (ToEdge::AuditTurned, vec![file.into()]),
                Ok(Err(fault)) => (ToEdge::AuditNotTurned { why: fault.to_string() }, Vec::new()),
                Err(fault) => (ToEdge::AuditNotTurned { why: fault.to_string() }, Vec::new()),
            };
            let _ = down.send((Down::Edge(answer.0), answer.1)).await;
        });
    }
}
