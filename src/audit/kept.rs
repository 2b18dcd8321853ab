//! The file that is written to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use super::chain::{Link, Opening, Record, Tail};
use super::line::{Entry, rfc3339};

/// All of it blocks.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    /// The last line of the file before.
    before: Link,
    /// The last line of this one; none until it has been looked at, and after a fault.
    link: Option<Link>,
    /// The last number before the lines that are waiting, since a write may have broken off among them.
    base: Option<u64>,
    waiting: VecDeque<Entry>,
    bytes: u64,
    day: u64,
    is_dirty: bool,
    /// Whether the file before was moved or deleted, which the first line of this one says.
    is_displaced: bool,
}

impl Kept {
    pub(super) fn new(file: File, before: Option<&File>) -> io::Result<Self> {
        let before = before.map(Tail::of).transpose()?.and_then(|tail| tail.last).unwrap_or(Link::START);
        let day = file.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH).map_or(0, day);
        Ok(Self {
            file,
            before,
            link: None,
            base: None,
            waiting: VecDeque::new(),
            bytes: 0,
            day,
            is_dirty: false,
            is_displaced: false,
        })
    }

    pub(super) fn take(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.waiting.extend(entries);
    }

    /// Writes what is waiting. What could not be written is waiting still; `lost` are lines that never came here.
    pub(super) fn write(&mut self, lost: u64) -> io::Result<()> {
        let mut link = match self.link {
            Some(link) => link,
            None => self.open(lost)?,
        };
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for entry in &self.waiting {
            link.append(entry, &mut text)?;
        }
        self.base = self.link.map(|link| link.number);
        self.add(&text, link)?;
        self.base = None;
        self.waiting.clear();
        Ok(())
    }

    /// Goes on behind the last whole line.
    fn open(&mut self, lost: u64) -> io::Result<Link> {
        let tail = self.end()?;
        let mut text = String::new();
        let time = rfc3339(kit::clock::since_epoch());
        let opening = Opening { record: Record::Calls, time, lost, displaced: self.is_displaced };
        let link = tail.open(self.before, opening, &mut text)?;
        self.bytes = tail.bytes;
        self.add(&text, link)?;
        self.is_displaced = false;
        Ok(link)
    }

    /// How the file ends. What stands there whole of a write that broke off is not waiting any more.
    fn end(&mut self) -> io::Result<Tail> {
        let tail = Tail::of(&self.file)?;
        if let (Some(base), Some(last)) = (self.base.take(), tail.last) {
            let whole = usize::try_from(last.number.saturating_sub(base)).unwrap_or(usize::MAX);
            self.waiting.drain(..whole.min(self.waiting.len()));
        }
        Ok(tail)
    }

    fn add(&mut self, text: &str, link: Link) -> io::Result<()> {
        self.is_dirty = true;
        self.link = None;
        self.file.write_all(text.as_bytes())?;
        self.link = Some(link);
        self.bytes = self.bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// What was written is on the disk from here.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// Whether another file should follow.
    pub(super) fn is_full(&self, most: u64, daily: bool) -> bool {
        self.link.is_some() && (self.bytes >= most || (daily && self.day != day(kit::clock::since_epoch())))
    }

    pub(super) fn go_on_in(&mut self, fresh: File) {
        self.before = self.link.take().unwrap_or(self.before);
        self.file = fresh;
        self.bytes = 0;
        self.day = day(kit::clock::since_epoch());
    }

    /// The same where the file is not in its place any more.
    pub(super) fn go_on_after_loss(&mut self, fresh: File) {
        if self.link.is_none() {
            // A write broke off: the file itself says how far it got.
            self.link = self.end().ok().and_then(|tail| tail.last);
        }
        // What it has is brought to the disk as far as that goes.
        let _ = self.sync();
        self.is_displaced = true;
        self.go_on_in(fresh);
    }
}

fn day(since_epoch: Duration) -> u64 {
    since_epoch.as_secs() / 86_400
}
