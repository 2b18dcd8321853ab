//! The record of ended sessions: lines appended to a descriptor that someone else opened.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use serde::{Deserialize, Serialize};

use super::seal::SessionId;

pub(super) struct Tombstones(Arc<File>);

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
    pub(super) fn open(file: File) -> io::Result<(Self, Vec<Record>)> {
        let mut reader = BufReader::new(&file);
        reader.seek(SeekFrom::Start(0))?;
        let mut records = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            // A line that was torn by a crash was never answered with success.
            records.extend(serde_json::from_slice(&line).ok().and_then(Record::from_line));
        }
        drop(reader);
        Ok((Self(Arc::new(file)), records))
    }

    /// Returns once the records are on the disk. Dropped meanwhile, they are written all the same.
    pub(super) async fn append(&self, records: &[Record]) -> io::Result<()> {
        let mut text = Vec::new();
        for record in records {
            // After a torn line the next begins on its own.
            if text.is_empty() {
                text.push(b'\n');
            }
            serde_json::to_writer(&mut text, &record.to_line())?;
            text.push(b'\n');
        }
        let file = Arc::clone(&self.0);
        let write = move || {
            // One write: with an appending descriptor the lines of two calls cannot mix.
            (&*file).write_all(&text)?;
            file.sync_data()
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

impl Record {
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
