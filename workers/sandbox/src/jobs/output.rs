//! What a command wrote, as far as it is kept.
//!
//! A ring of pieces that drops the oldest. A cursor is a place in the whole output of both streams, counted in bytes from
//! the beginning, so it never goes stale: what it asks for is there, or was dropped and is counted. A page that was handed
//! out is handed out again for the same cursor. Characters are never cut: an unfinished one waits for its rest, and pages
//! end between characters. Besides the ring, the beginning of each stream is kept, for results that show head and tail.

use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// How much of one job's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub bytes: usize,
    pub pieces: usize,
}

impl Default for Room {
    /// The original's numbers.
    fn default() -> Self {
        Self { bytes: 4 << 20, pieces: 1024 }
    }
}

/// One job's output.
#[derive(Debug)]
pub(crate) struct Output {
    room: Room,
    pieces: VecDeque<Piece>,
    held: usize,
    end: u64,
    /// Where each page that was handed out begins and ends.
    pages: BTreeMap<u64, u64>,
    stdout: Side,
    stderr: Side,
}

#[derive(Debug)]
struct Piece {
    at: u64,
    stream: Stream,
    bytes: Vec<u8>,
}

/// What is known of one stream beside the ring.
#[derive(Debug, Default)]
struct Side {
    /// The beginning of a character whose rest has not been read yet.
    unfinished: Vec<u8>,
    head: Vec<u8>,
    total: u64,
    /// How many of the bytes are no part of a character.
    invalid: u64,
}

/// A stretch of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) chunks: Vec<Chunk>,
    /// The cursor of what comes next.
    pub(crate) next: u64,
    /// Whether something that is kept comes next.
    pub(crate) has_more: bool,
    /// How many bytes after the cursor were dropped before they were read.
    pub(crate) dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) sequence: u64,
    pub(crate) stream: Stream,
    pub(crate) bytes: Vec<u8>,
}

/// One stream's beginning and end, with what lies between left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extract {
    pub(crate) total: u64,
    pub(crate) head: Vec<u8>,
    /// How many bytes are missing between head and tail.
    pub(crate) cut: u64,
    pub(crate) tail: Vec<u8>,
    /// How many bytes of the whole stream are no UTF-8 text.
    pub(crate) invalid: u64,
}

impl Output {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            pieces: VecDeque::new(),
            held: 0,
            end: 0,
            pages: BTreeMap::new(),
            stdout: Side::default(),
            stderr: Side::default(),
        }
    }

    /// Takes what was read from a stream.
    pub(crate) fn append(&mut self, stream: Stream, read: &[u8]) {
        let mut bytes = std::mem::take(&mut self.side(stream).unfinished);
        bytes.extend_from_slice(read);
        let unfinished = bytes.split_off(bytes.len() - unfinished_length(&bytes));
        self.side(stream).unfinished = unfinished;
        self.keep(stream, &bytes);
    }

    /// Takes characters that will never be finished as they are: nothing more will be read.
    pub(crate) fn seal(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = std::mem::take(&mut self.side(stream).unfinished);
            self.keep(stream, &rest);
        }
    }

    /// Where the output ends so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn total(&self, stream: Stream) -> u64 {
        match stream {
            Stream::Stdout => self.stdout.total,
            Stream::Stderr => self.stderr.total,
        }
    }

    /// The page at `cursor`, of at most `most` bytes unless it was handed out before.
    pub(crate) fn page(&mut self, cursor: u64, most: usize) -> Page {
        let begin = self.begin();
        let asked = cursor.min(self.end);
        let from = asked.max(begin);
        let to = match self.pages.get(&from) {
            Some(to) => *to,
            None => self.cut(from, most),
        };
        if to > from {
            self.pages.insert(from, to);
        }
        if self.pages.len() > MOST_PAGES {
            self.pages.pop_first();
        }
        let mut chunks: Vec<Chunk> = Vec::new();
        for piece in &self.pieces {
            let (at, bytes) = piece.between(from, to);
            if bytes.is_empty() {
                continue;
            }
            match chunks.last_mut() {
                Some(last) if last.stream == piece.stream => last.bytes.extend_from_slice(bytes),
                _ => chunks.push(Chunk { sequence: at, stream: piece.stream, bytes: bytes.to_vec() }),
            }
        }
        Page { chunks, next: to, has_more: to < self.end, dropped: from - asked }
    }

    /// Beginning and end of one stream in at most `most` bytes, which is at most [`MOST_EXTRACT`].
    pub(crate) fn extract(&self, stream: Stream, most: usize) -> Extract {
        let most = most.min(MOST_EXTRACT);
        let side = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        // The kept head is as long as the longest extract, so what fits is whole there, whatever the ring has dropped.
        if side.total <= length(most) {
            let (total, head, invalid) = (side.total, side.head.clone(), side.invalid);
            return Extract { total, head, cut: 0, tail: Vec::new(), invalid };
        }
        // Errors stand at the end and the cause at the beginning; the end is usually worth more.
        let begin = boundary(&side.head, most / 4);
        let head = side.head.get(..begin).unwrap_or_default().to_vec();
        let tail = self.tail(stream, most - begin);
        let cut = side.total.saturating_sub(length(head.len())).saturating_sub(length(tail.len()));
        Extract { total: side.total, head, cut, tail, invalid: side.invalid }
    }

    /// The last complete line that was written, or the unfinished one, for a progress report.
    pub(crate) fn last_line(&self) -> Option<String> {
        let piece = self.pieces.back()?;
        let text = piece.bytes.trim_ascii_end();
        let line = text.rsplit(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let line = line.get(..boundary(line, LONGEST_PROGRESS)).unwrap_or_default();
        (!line.is_empty()).then(|| String::from_utf8_lossy(line).into_owned())
    }

    fn begin(&self) -> u64 {
        self.pieces.front().map_or(self.end, |piece| piece.at)
    }

    fn side(&mut self, stream: Stream) -> &mut Side {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// Keeps whole characters.
    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        let side = self.side(stream);
        side.total += length(bytes.len());
        side.invalid += length(invalid(bytes));
        let missing = MOST_EXTRACT.saturating_sub(side.head.len());
        side.head.extend_from_slice(bytes.get(..missing.min(bytes.len())).unwrap_or_default());
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = boundary(rest, LONGEST_PIECE);
            let (piece, after) = rest.split_at(taken);
            self.push(stream, piece);
            rest = after;
        }
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        match self.pieces.back_mut() {
            Some(last) if last.stream == stream && last.bytes.len() + bytes.len() <= LONGEST_PIECE => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.pieces.push_back(Piece { at: self.end, stream, bytes: bytes.to_vec() }),
        }
        self.held += bytes.len();
        self.end += length(bytes.len());
        while self.held > self.room.bytes || self.pieces.len() > self.room.pieces {
            let Some(oldest) = self.pieces.pop_front() else { break };
            self.held -= oldest.bytes.len();
        }
        let begin = self.begin();
        self.pages = self.pages.split_off(&begin);
    }

    /// Where a page ends that begins at `from` and has room for `most` bytes.
    fn cut(&self, from: u64, most: usize) -> u64 {
        let wanted = from.saturating_add(length(most.max(LONGEST_CHARACTER)));
        if wanted >= self.end {
            return self.end;
        }
        let inside = self.pieces.iter().find(|piece| piece.at <= wanted && wanted < piece.end());
        inside.map_or(wanted, |piece| {
            let index = usize::try_from(wanted - piece.at).unwrap_or(piece.bytes.len());
            piece.at + length(boundary(&piece.bytes, index))
        })
    }

    fn tail(&self, stream: Stream, most: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        let mut missing = most;
        for piece in self.pieces.iter().rev().filter(|piece| piece.stream == stream) {
            if missing == 0 {
                break;
            }
            let from = piece.bytes.len().saturating_sub(missing);
            let part = piece.bytes.get(from..).unwrap_or_default();
            missing -= part.len();
            taken.push(part);
        }
        let tail = taken.into_iter().rev().collect::<Vec<_>>().concat();
        // The first bytes may be the rest of a character that was cut.
        let skipped = tail.iter().take(LONGEST_CHARACTER - 1).take_while(|byte| is_continuation(**byte)).count();
        tail.get(skipped..).unwrap_or_default().to_vec()
    }
}

impl Piece {
    fn end(&self) -> u64 {
        self.at + length(self.bytes.len())
    }

    /// What of the piece lies in `from..to`, with its place.
    fn between(&self, from: u64, to: u64) -> (u64, &[u8]) {
        let first = from.clamp(self.at, self.end());
        let last = to.clamp(first, self.end());
        let index = |place: u64| usize::try_from(place - self.at).unwrap_or(self.bytes.len());
        (first, self.bytes.get(index(first)..index(last)).unwrap_or_default())
    }
}

/// The place at or at most three bytes before `most` where a character of `bytes` begins.
fn boundary(bytes: &[u8], most: usize) -> usize {
    match bytes.get(..most) {
        Some(before) if before.len() < bytes.len() => most - unfinished_length(before),
        _ => bytes.len(),
    }
}

/// How many bytes at the end are the beginning of a character that may still be finished.
fn unfinished_length(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().take(LONGEST_CHARACTER - 1).enumerate() {
        let expected = match byte {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return 0,
        };
        let present = back + 1;
        let start = bytes.get(bytes.len() - present..).unwrap_or_default();
        // Only what can still become a character waits: `E2 28` never will.
        let hopeless = std::str::from_utf8(start).is_err_and(|fault| fault.error_len().is_some());
        return if present < expected && !hopeless { present } else { 0 };
    }
    0
}

/// How many bytes are no part of a character.
fn invalid(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => 0,
        Err(_) => bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum(),
    }
}

fn is_continuation(byte: u8) -> bool {
    (0x80..=0xBF).contains(&byte)
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The most that `max_output_bytes` may ask for; also how much of each stream's beginning is kept.
pub(crate) const MOST_EXTRACT: usize = 45_000;
/// Small enough that dropping one piece loses little, large enough that a full ring has few.
const LONGEST_PIECE: usize = 64 << 10;
const LONGEST_CHARACTER: usize = 4;
/// A client repeats the page that it may not have received, not one of a thousand pages ago.
const MOST_PAGES: usize = 1024;
const LONGEST_PROGRESS: usize = 200;

#[cfg(test)]
mod tests;
