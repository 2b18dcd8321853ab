//! How lines hang together.
//!
//! A line is `{"n":NUMBER,…,"hash":"HEX"}`. The hash is over the hash of the line before it and this one's bytes up to
//! its own hash. A line with the event `opened` stands where writing began or went on: in a fresh file, after a start,
//! after a fault. It names the hash that it follows, which in a fresh file is the last of the file before, and the
//! bytes of a line that was torn off before it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use aws_lc_rs::digest::{Context, SHA256, digest};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// The last line there is: its number and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub number: u64,
    pub hash: Hash,
}

/// How a file ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last whole line.
    pub last: Option<Link>,
    /// What stands behind it.
    pub torn: Vec<u8>,
    /// Whether the last byte ends a line, or there is none.
    pub is_ended: bool,
    pub bytes: u64,
}

/// What a line says that begins a file or goes on in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub time: String,
    pub event: Event,
    /// The hash that this line follows.
    pub previous: String,
    pub torn_bytes: u64,
    pub torn_sha256: String,
    /// Lines that could not be written since the last one.
    pub lost: u64,
    /// Whose first or next line this is; older ones do not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    /// Whether the file before was moved or deleted while it was written to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub displaced: bool,
}

/// Which of the records a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    Calls,
    Acts,
}

/// What a line says that begins a file or goes on in it, beside what the file's end does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    pub record: Record,
    pub time: String,
    pub lost: u64,
    pub displaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    Opened,
}

impl Hash {
    pub const NONE: Self = Self([0; 32]);

    pub(super) fn of(context: Context) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }

    /// Of bytes that are no line.
    #[must_use]
    pub fn plain(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(hash)
    }

    #[must_use]
    pub fn parse(hex: &[u8]) -> Option<Self> {
        HEXLOWER.decode(hex).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "the record of calls",
            Self::Acts => "the record of acts",
        })
    }
}

impl Link {
    /// Before the first line.
    pub const START: Self = Self { number: 0, hash: Hash::NONE };

    /// The hash of a line that follows this one.
    #[must_use]
    pub fn covers(&self, body: &[u8]) -> Hash {
        let mut context = Context::new(&SHA256);
        context.update(b"playground audit line 1\n");
        context.update(&self.hash.0);
        context.update(body);
        Hash::of(context)
    }

    /// Appends the line that follows this one to a text, and becomes it.
    ///
    /// # Errors
    /// When what it says is no JSON object.
    pub fn append(&mut self, says: &impl Serialize, to: &mut String) -> io::Result<()> {
        let says = serde_json::to_string(says)?;
        let members = says.strip_prefix('{').ok_or(io::ErrorKind::InvalidData)?;
        let members = members.strip_suffix('}').ok_or(io::ErrorKind::InvalidData)?;
        let number = self.number.saturating_add(1);
        let body = format!("{BEGINS}{number},{members}");
        let hash = self.covers(body.as_bytes());
        to.push_str(&format!("{body}{HASH}{hash}{ENDS}\n"));
        *self = Self { number, hash };
        Ok(())
    }
}

/// What a whole line, without its end, covers with its hash, and the link that it is.
#[must_use]
pub fn split(line: &[u8]) -> Option<(&[u8], Link)> {
    let rest = line.strip_suffix(ENDS.as_bytes())?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
    let hash = Hash::parse(hash)?;
    let body = rest.strip_suffix(HASH.as_bytes())?;
    let digits = body.strip_prefix(BEGINS.as_bytes())?;
    let digits = digits.split(|byte| *byte == b',').next()?;
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((body, Link { number, hash }))
}

impl Tail {
    /// Looks at the end of a file; blocking.
    ///
    /// # Errors
    /// When it cannot be read, or has no line near its end.
    pub fn of(file: &File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let begin = bytes.saturating_sub(MOST_TAIL);
        let mut end = vec![0; usize::try_from(bytes - begin).unwrap_or_default()];
        file.read_exact_at(&mut end, begin)?;
        let mut tail = Self { is_ended: end.last().is_none_or(|last| *last == b'\n'), bytes, ..Self::default() };
        let mut at = 0;
        let mut whole = 0;
        for piece in end.split_inclusive(|byte| *byte == b'\n') {
            at += piece.len();
            if let Some((_, link)) = split(piece.strip_suffix(b"\n").unwrap_or(piece)) {
                (tail.last, whole) = (Some(link), at);
            }
        }
        if tail.last.is_none() && begin > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not end like a record of calls"));
        }
        tail.torn = end.split_off(whole);
        Ok(tail)
    }

    /// Appends what must stand before the next line of this file, and yields the link to go on from. `before` is the
    /// last of the file before, where this one has no line.
    ///
    /// # Errors
    /// Never in practice; see [`Link::append`].
    pub fn open(&self, before: Link, opening: Opening, to: &mut String) -> io::Result<Link> {
        if !self.is_ended {
            to.push('\n');
        }
        let mut link = self.last.unwrap_or(before);
        let Opening { record, time, lost, displaced } = opening;
        let opened = Opened {
            time,
            event: Event::Opened,
            previous: link.hash.to_string(),
            torn_bytes: u64::try_from(self.torn.len()).unwrap_or(u64::MAX),
            torn_sha256: Hash::plain(&self.torn).to_string(),
            lost,
            record: Some(record),
            displaced,
        };
        link.append(&opened, to)?;
        Ok(link)
    }
}

const BEGINS: &str = "{\"n\":";
const HASH: &str = ",\"hash\":\"";
const ENDS: &str = "\"}";

/// Several times the longest line.
const MOST_TAIL: u64 = 256 * 1024;
