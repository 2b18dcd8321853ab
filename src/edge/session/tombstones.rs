//! The record of ended sessions: lines appended to a descriptor that someone else opened.
//!
//! It only grows while a service runs. Whoever opens it makes it small again first, by [`super::table::compacted`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use super::seal::SessionId;

pub(super) struct Tombstones {
    file: Arc<File>,
    most: u64,
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
    /// Takes over a descriptor opened for reading and appending, and what stands in it. Blocking, for the start.
    /// It is never made to grow beyond `most` bytes.
    pub(super) fn open(file: File, most: u64) -> io::Result<(Self, Vec<Record>)> {
        let mut reader = BufReader::new(&file);
        reader.seek(SeekFrom::Start(0))?;
        let mut records = Vec::new();
        read(&mut reader, |record| records.push(record))?;
        drop(reader);
        Ok((Self { file: Arc::new(file), most }, records))
    }

    /// Returns once the records are on the disk. Dropped meanwhile, they are written all the same.
    pub(super) async fn append(&self, records: &[Record]) -> io::Result<()> {
        // After a torn line the next begins on its own.
        let mut text = vec![b'\n'];
        write(records, &mut text)?;
        let (file, most) = (Arc::clone(&self.file), self.most);
        let write = move || {
            let more = u64::try_from(text.len()).unwrap_or(u64::MAX);
            if file.metadata()?.len().saturating_add(more) > most {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, FULL));
            }
            // One write: with an appending descriptor the lines of two calls cannot mix.
            (&*file).write_all(&text)?;
            file.sync_data()
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

/// Hands each record of a text to `each`.
pub(super) fn read(text: &mut impl BufRead, mut each: impl FnMut(Record)) -> io::Result<()> {
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

pub(super) fn write(records: &[Record], text: &mut Vec<u8>) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *text, &record.to_line())?;
        text.push(b'\n');
    }
    Ok(())
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

const FULL: &str = "it is full; a restart of the service makes it small again";

/// Many times what a line takes: a tenant's label and numbers.
const MOST_LINE_BYTES: u64 = 16 * 1024;
