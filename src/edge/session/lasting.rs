//! What of sessions outlives a change of configuration.

use std::future::Future;
use std::sync::Arc;

use super::flights::Flights;
use super::live::{LiveSession, NotEnded, SessionName};
use super::table::{self, Departed, OpenError, Table};
use crate::edge::config::Sessions as Limits;

/// The sessions, and what is under way in them; clones share it.
#[derive(Clone)]
pub(crate) struct Lasting {
    pub(super) table: Arc<Table>,
    pub(super) flights: Arc<Flights>,
}

impl Lasting {
    /// The table of live and ended sessions, with what an earlier edge recorded in `tombstones`.
    pub(crate) fn open(limits: Limits, tombstones: Option<[std::fs::File; 2]>) -> Result<Self, OpenError> {
        let table = Table::open(limits, tombstones, kit::clock::since_epoch())?;
        Ok(Self { table: Arc::new(table), flights: Arc::default() })
    }

    /// Resolves when the record of ended sessions has grown, and is to be compacted if it is time.
    pub(crate) async fn grown(&self) {
        self.table.grown().await;
    }

    /// Makes the record small, if it is time. Dropped meanwhile, it is done all the same.
    pub(crate) fn compact(&self) -> impl Future<Output = ()> + Send + use<> {
        let table = Arc::clone(&self.table);
        async move {
            let compact = move || table.compact(kit::clock::now(), kit::clock::since_epoch());
            if let Ok(Err(fault)) = tokio::task::spawn_blocking(compact).await {
                let fault: &dyn std::error::Error = &fault;
                tracing::warn!(fault, "ended sessions take more of the disk than they need");
            }
        }
    }

    pub(crate) fn sizes(&self) -> table::Sizes {
        self.table.sizes(self.flights.count())
    }

    pub(crate) fn adopt(&self, limits: Limits) {
        self.table.adopt(limits);
    }

    /// Ends native workers' sessions whose time is over.
    pub(crate) fn sweep(&self) {
        self.table.sweep(kit::clock::now(), kit::clock::since_epoch());
    }

    /// The next session whose worker is to be told that it has ended.
    pub(crate) fn departed(&self) -> Option<Departed> {
        self.table.departed()
    }

    /// The live sessions that have an entry.
    pub(crate) fn list(&self) -> Vec<LiveSession> {
        self.table.list(kit::clock::now(), kit::clock::since_epoch())
    }

    /// Ends the session of this name, with what is under way in it. Its worker stands in line to be told.
    pub(crate) fn end(&self, name: SessionName) -> impl Future<Output = Result<LiveSession, NotEnded>> + Send + use<> {
        let Self { table, flights } = self.clone();
        async move {
            let (id, ended) = table.end_called(name, kit::clock::now(), kit::clock::since_epoch()).await;
            if let Some(id) = id {
                flights.end_all(id);
            }
            ended
        }
    }
}
