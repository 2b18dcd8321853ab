//! The record of calls, whose file must be the one at its path.
//!
//! An edge opens no path, so a file that is moved or deleted under it would take all that follows with it in silence. Once
//! a second the path is looked at; what is there in the place of the file in use, or nothing, is a trouble that is logged
//! and shown. The edge is given a file at the path, whose first line says what happened, or is told that there is none.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::kept::Event;
use super::{Phase, Supervisor};
use crate::app::words::{Down, ToEdge};
use crate::audit::line::rfc3339;
use crate::audit::{Folder, Identity};

/// Where calls are recorded, and which file an edge was given.
#[derive(Debug)]
pub(super) struct Recorded {
    record: Option<Record>,
    /// When to look at the path; none while somebody looks.
    look: Option<Instant>,
    /// Since when there is no file at the path that could be written to, and why.
    nowhere: Option<String>,
    /// What was last moved or deleted.
    lost: Option<String>,
}

/// Held while a file is looked at, so that one that is put aside in its turn is not missed.
#[derive(Clone, Debug)]
pub(super) struct Record {
    folder: Folder,
    used: Arc<Mutex<Option<Identity>>>,
}

/// What a look at the path found.
#[derive(Debug)]
pub(super) enum Found {
    InPlace,
    /// Another, which is written to from now on.
    Another(File),
    None(io::Error),
}

impl Recorded {
    pub(super) fn new(folder: Option<Folder>) -> Self {
        let look = folder.is_some().then(|| kit::clock::now() + LOOK_PAUSE);
        let record = folder.map(|folder| Record { folder, used: Arc::default() });
        Self { record, look, nowhere: None, lost: None }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.look
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    pub(super) fn troubles(&self) -> impl Iterator<Item = String> {
        self.nowhere.iter().chain(&self.lost).cloned()
    }
}

impl Record {
    /// What an edge begins with; blocking.
    pub(super) fn open(&self) -> io::Result<(File, Option<File>)> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, before) = self.folder.open()?;
        *used = Some(Identity::of(&file)?);
        Ok((file, before))
    }

    /// The file that follows; blocking.
    pub(super) fn turn(&self) -> io::Result<File> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.folder.turn()?;
        *used = Some(Identity::of(&file)?);
        Ok(file)
    }

    /// Blocking.
    fn look(&self) -> Found {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.current();
        if used.is_some_and(|used| used.is_at(&path).unwrap_or(false)) {
            return Found::InPlace;
        }
        // Until a file is given to the edge, none is in use.
        *used = None;
        match self.folder.open().and_then(|(file, _)| Ok((Identity::of(&file)?, file))) {
            Ok((is, file)) => {
                *used = Some(is);
                Found::Another(file)
            }
            Err(fault) => Found::None(fault),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.current()
    }
}

impl Supervisor {
    pub(super) fn look_at_record_if_due(&mut self, now: Instant) {
        if self.recorded.look.is_none_or(|look| now < look) {
            return;
        }
        if !self.edge.is_ready() {
            // The next one opens the path itself.
            self.recorded.look = Some(now + LOOK_PAUSE);
            return;
        }
        let Some(record) = self.recorded.record.clone() else { return };
        self.recorded.look = None;
        let tell = self.tell.clone();
        self.tasks.start(async move {
            if let Ok(found) = tokio::task::spawn_blocking(move || record.look()).await {
                // Nobody listens once the supervisor has ended.
                let _ = tell.send(Event::RecordLooked(found)).await;
            }
        });
    }

    pub(super) fn looked_at_record(&mut self, found: Found) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.recorded.look = Some(kit::clock::now() + LOOK_PAUSE);
        let Some(path) = self.recorded.record.as_ref().map(|record| record.path().display().to_string()) else {
            return;
        };
        match found {
            Found::InPlace => {}
            Found::Another(file) => {
                let at = rfc3339(kit::clock::since_epoch());
                self.edge.say(Down::Edge(ToEdge::AuditDisplaced), vec![file.into()]);
                tracing::error!(
                    path,
                    "the file of the record of calls was moved or deleted; the record goes on in another"
                );
                self.recorded.nowhere = None;
                self.recorded.lost = Some(format!(
                    "{path} was moved or deleted while it was written to, which was seen at {at}; the record goes on in another file, and what is gone may be missing"
                ));
                self.tell_troubles();
            }
            Found::None(fault) => {
                let why = format!(
                    "{path} was moved or deleted while it was written to, and none can be opened there: {fault}"
                );
                if self.recorded.nowhere.as_ref() != Some(&why) {
                    self.edge.say(Down::Edge(ToEdge::AuditNowhere { why: why.clone() }), Vec::new());
                    self.recorded.nowhere = Some(why);
                    self.tell_troubles();
                }
            }
        }
    }

    /// Whoever looks at the service asks the edge.
    pub(super) fn tell_troubles(&mut self) {
        let reload = self.reload_fault.iter().map(|fault| {
            let fault = fault.lines().map(str::trim).collect::<Vec<_>>().join("; ");
            let fault: String = fault.chars().take(MOST_LETTERS).collect();
            format!("the last reload failed and nothing was changed: {fault}")
        });
        let what = reload.chain(self.recorded.troubles()).collect();
        self.edge.say(Down::Edge(ToEdge::Troubles { what }), Vec::new());
    }
}

/// Between two looks. Each is a `stat`.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A file with faults on every line is no reason for a message that its reader refuses.
const MOST_LETTERS: usize = 4000;
