//! The sessions that the edge keeps with workers: one for a tenant and its worker.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kit::Tenant;
use kit::tasks::Tasks;
use tokio::sync::{OnceCell, watch};

use crate::edge::Cause;
use crate::edge::config::Bridges;
use crate::worker::{Endpoint, Loopback, Upstream};

use super::line::Line;
use super::session::{Session, Use};

/// Outlives a change of configuration.
#[derive(Clone, Default)]
// Bounded by `Bridges::most`.
pub(crate) struct Kept(Arc<Mutex<HashMap<Key, Cell>>>);

/// What is needed to keep sessions.
#[derive(Clone)]
pub(super) struct Keeping {
    pub(super) kept: Kept,
    pub(super) limits: Bridges,
    pub(super) most_buffered: usize,
    /// The edge waits for these, so that a worker hears of the end.
    pub(super) leaves: Tasks,
    pub(super) stopping: watch::Receiver<bool>,
}

/// A worker at another path is another worker.
type Key = (Tenant, Loopback, Endpoint);

/// Filled by the first who needs the session, while the others wait; all of them learn it when it cannot be opened.
type Cell = Arc<OnceCell<Result<Arc<Session>, Cause>>>;

impl Kept {
    /// Ends the sessions with workers that their tenants no longer reach in this way.
    pub(crate) fn keep(&self, is_bridged: impl Fn(&Tenant, Loopback, &Endpoint) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(tenant, address, path), cell| {
            let stays = is_bridged(tenant, *address, path);
            if let (false, Some(Ok(session))) = (stays, cell.get()) {
                session.end();
            }
            stays
        });
    }

    /// How many there are of each tenant.
    pub(crate) fn by_tenant(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (tenant, ..) in self.0.lock().unwrap_or_else(PoisonError::into_inner).keys() {
            *counts.entry(tenant.as_str().to_owned()).or_default() += 1;
        }
        counts
    }

    fn cell(&self, key: &Key, most: usize) -> Result<Cell, Cause> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(key)
            && !cell.get().is_some_and(|opened| opened.as_ref().is_ok_and(|session| session.is_ended()))
        {
            return Ok(Arc::clone(cell));
        }
        cells.remove(key);
        if cells.len() >= most {
            let resting = cells
                .iter()
                .filter_map(|(key, cell)| Some((cell.get()?.as_ref().ok()?.resting()?, key)))
                .min_by_key(|(since, _)| *since);
            let oldest = resting.map(|(_, key)| key.clone());
            let oldest = oldest.ok_or(Cause::EdgeBusy)?;
            if let Some(Ok(session)) = cells.remove(&oldest).as_ref().and_then(|cell| cell.get()) {
                session.end();
            }
        }
        let cell = Cell::default();
        cells.insert(key.clone(), Arc::clone(&cell));
        Ok(cell)
    }

    fn forget(&self, key: &Key, cell: &Cell) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.get(key).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            cells.remove(key);
        }
    }
}

impl Keeping {
    /// The session of the line's tenant with the line's worker.
    pub(super) async fn session(&self, line: &Line) -> Result<Use, Cause> {
        let Upstream { address, terms, .. } = &*line.upstream;
        let key = (line.principal.tenant().clone(), *address, terms.path.clone());
        for _ in 0..TRIES {
            let cell = self.kept.cell(&key, self.limits.most)?;
            let opened = cell
                .get_or_init(|| async {
                    let session = Session::open(line, self.most_buffered).await?;
                    self.watch(Arc::clone(&session), key.clone(), Arc::clone(&cell), line.clone());
                    Ok(session)
                })
                .await;
            match opened.as_ref().map(Session::begin) {
                Ok(Some(used)) => return Ok(used),
                // It ended between two looks.
                Ok(None) => self.kept.forget(&key, &cell),
                Err(cause) => {
                    self.kept.forget(&key, &cell);
                    return Err(cause.clone());
                }
            }
        }
        Err(Cause::EdgeBusy)
    }

    /// Ends the session when its time has come.
    fn watch(&self, session: Arc<Session>, key: Key, cell: Cell, line: Line) {
        let (kept, idle, stopping) = (self.kept.clone(), self.limits.idle, self.stopping.clone());
        self.leaves.start(async move {
            let tell = session.over(idle, stopping).await;
            kept.forget(&key, &cell);
            if tell {
                line.end(&session.place).await;
            }
        });
    }
}

/// A session ends between two looks once in a long while, and never three times in a row.
const TRIES: usize = 3;
