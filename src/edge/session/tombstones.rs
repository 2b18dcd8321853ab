//! The record of ended sessions: lines appended to one of two files that someone else opened.
//!
//! A file only grows. To make the record small, ends are appended to the other file from then on; then what still matters
//! is appended there as well; and once that is on the disk, the first file is emptied. Lines may come twice and in any
//! order, since an end is never taken back. So both files together say, at every instant of it, all that was promised:
//!
//! ```text
//!   first  ended ended ended │ ended ended ended │ ended ended ended │
//!   other                    │ more              │ more kept more    │ more kept more more
//!                          turn                write           sync, empty
//! ```
//!
//! Nothing waits meanwhile: an end is one write and one sync, before and after the turn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kit::Tenant;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::seal::SessionId;

pub(super) struct Tombstones {
    files: [File; 2],
    /// In bytes, of each file.
    most: u64,
    turn: Mutex<Turn>,
    grown: Notify,
}

/// Which file is appended to, and when it is the other's turn.
struct Turn {
    side: Side,
    /// What is about to be appended by whoever makes the record small.
    reserved: u64,
    /// The length that is worth making small.
    due: u64,
    busy: bool,
    not_before: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Second,
}

pub(super) enum Record {
    Session { tenant: Tenant, session: SessionId, issued: Duration, expires: Duration },
    Minimum { tenant: Tenant, minimum: Duration },
}

#[derive(Serialize, Deserialize)]
struct Line {
    tenant: Tenant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minimum: Option<u64>,
}

impl Tombstones {
    /// Takes over two descriptors opened for reading and appending, and hands what stands in them to `each`. Blocking,
    /// for the start. Ends make neither file grow beyond `most` bytes.
    pub(super) fn open(files: [File; 2], most: u64, mut each: impl FnMut(Record)) -> io::Result<Self> {
        for file in &files {
            let mut reader = BufReader::new(file);
            reader.seek(SeekFrom::Start(0))?;
            read(&mut reader, &mut each)?;
        }
        let [first, second] = &files;
        // The smaller is what someone was just making when he was killed.
        let side = if first.metadata()?.len() < second.metadata()?.len() { Side::Second } else { Side::First };
        let turn = Turn { side, reserved: 0, due: most / WORTH, busy: false, not_before: None };
        let these = Self { files, most, turn: Mutex::new(turn), grown: Notify::new() };
        // It may have been left so.
        these.grown.notify_one();
        Ok(these)
    }

    /// Returns once the records are on the disk. Dropped meanwhile, they are written all the same.
    ///
    /// Whoever calls has remembered them already, so that they are among what is kept if the record turns right now.
    pub(super) async fn append(self: &Arc<Self>, records: &[Record]) -> io::Result<()> {
        let text = text_of(records)?;
        let these = Arc::clone(self);
        tokio::task::spawn_blocking(move || these.promise(&text)).await.map_err(io::Error::other)?
    }

    fn promise(&self, text: &[u8]) -> io::Result<()> {
        let (mut file, reserved, due) = {
            let turn = self.turn();
            (self.of(turn.side), turn.reserved, turn.due)
        };
        let length = file.metadata()?.len().saturating_add(bytes(text));
        if length.saturating_add(reserved) > self.most {
            self.grown.notify_one();
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, FULL));
        }
        // One write: with an appending descriptor the lines of two calls cannot mix.
        file.write_all(text)?;
        file.sync_data()?;
        if length >= due {
            self.grown.notify_one();
        }
        Ok(())
    }

    /// Resolves when an end has made the record large enough to look at it.
    pub(super) async fn grown(&self) {
        self.grown.notified().await;
    }

    /// Whether the record is to be made small now. If so, it must be: nobody else does it until that has come to its end.
    pub(super) fn begin(&self, now: Instant) -> bool {
        let mut turn = self.turn();
        let length = self.of(turn.side).metadata().map_or(0, |file| file.len());
        let due = length >= turn.due && !turn.busy && turn.not_before.is_none_or(|until| now >= until);
        turn.busy |= due;
        due
    }

    /// Makes the record small, after [`Self::begin`]; blocking. `kept` yields what still matters, a few records at a
    /// time, as it is at the moment of each.
    ///
    /// A fault loses nothing: whatever was promised stands in one of both files.
    pub(super) fn compact<I: Iterator<Item = Vec<Record>>>(
        &self,
        now: Instant,
        kept: impl Fn() -> I,
    ) -> io::Result<()> {
        let done = self.rewrite(kept);
        let mut turn = self.turn();
        (turn.reserved, turn.busy) = (0, false);
        // Otherwise a record of which most is kept would be made small again and again.
        turn.due = done.as_ref().map_or(turn.due, |length| length.saturating_mul(2).max(self.most / WORTH));
        turn.due = turn.due.min(self.most);
        turn.not_before = done.is_err().then(|| now + PAUSE);
        done.map(drop)
    }

    fn rewrite<I: Iterator<Item = Vec<Record>>>(&self, kept: impl Fn() -> I) -> io::Result<u64> {
        let mut needed = 0_u64;
        for records in kept() {
            needed = needed.saturating_add(bytes(&text_of(&records)?));
        }
        let [first, second] = &self.files;
        let lengths = (first.metadata()?.len(), second.metadata()?.len());
        // The other one, unless a try that failed has turned already.
        let (side, length) = if lengths.0 <= lengths.1 { (Side::First, lengths.0) } else { (Side::Second, lengths.1) };
        if length.saturating_add(needed) > self.most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, FULL));
        }
        {
            // Whoever wrote to the other file before had remembered it before, so `kept` has it from here on.
            let mut turn = self.turn();
            (turn.side, turn.reserved) = (side, needed);
        }
        let mut file = self.of(side);
        for records in kept() {
            file.write_all(&text_of(&records)?)?;
        }
        file.sync_data()?;
        self.of(side.other()).set_len(0)?;
        Ok(file.metadata()?.len())
    }

    fn of(&self, side: Side) -> &File {
        let [first, second] = &self.files;
        match side {
            Side::First => first,
            Side::Second => second,
        }
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

fn text_of(records: &[Record]) -> io::Result<Vec<u8>> {
    // After a torn line the next begins on its own.
    let mut text = vec![b'\n'];
    for record in records {
        serde_json::to_writer(&mut text, &record.to_line())?;
        text.push(b'\n');
    }
    Ok(text)
}

fn bytes(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// Hands each record of a text to `each`.
fn read(text: &mut impl BufRead, each: &mut impl FnMut(Record)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // A line that was torn by a crash was never answered with success, and one that is too long is not ours.
        if let Some(record) = serde_json::from_slice(&line).ok().and_then(Record::from_line) {
            each(record);
        }
    }
}

impl Record {
    /// Whether every session that the record speaks of has expired by itself.
    pub(super) fn is_over(&self, lifetime: Duration, today: Duration) -> bool {
        match self {
            Self::Session { expires, .. } => *expires <= today,
            Self::Minimum { minimum, .. } => minimum.saturating_add(lifetime) <= today,
        }
    }

    fn to_line(&self) -> Line {
        let millis = |time: &Duration| u64::try_from(time.as_millis()).ok();
        match self {
            Self::Session { tenant, session, issued, expires } => Line {
                tenant: tenant.clone(),
                session: Some(session.to_text()),
                issued: millis(issued),
                expires: millis(expires),
                minimum: None,
            },
            Self::Minimum { tenant, minimum } => {
                Line { tenant: tenant.clone(), session: None, issued: None, expires: None, minimum: millis(minimum) }
            }
        }
    }

    fn from_line(line: Line) -> Option<Self> {
        let Line { tenant, session, issued, expires, minimum } = line;
        if let Some(minimum) = minimum {
            return Some(Self::Minimum { tenant, minimum: Duration::from_millis(minimum) });
        }
        let session = SessionId::from_text(&session?)?;
        let [issued, expires] = [issued?, expires?].map(Duration::from_millis);
        Some(Self::Session { tenant, session, issued, expires })
    }
}

/// A record that is mostly of sessions that have expired is made small before it comes to this.
const FULL: &str = "it is full of ended sessions that have not expired yet";

/// Below this part of its bound a record is not worth making small: of the default 64 MiB it is one.
const WORTH: u64 = 64;

/// Between two tries to make it small when one has failed.
const PAUSE: Duration = Duration::from_secs(60);

/// Many times what a line takes: a tenant's label and numbers.
const MOST_LINE_BYTES: u64 = 16 * 1024;
