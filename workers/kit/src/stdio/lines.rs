//! The transport of the stdio server: lines in, lines out.
//!
//! The library's own transport drops a line that is not JSON without a word; ours answers it, since a model's client that
//! waits for an answer to a mangled line waits for ever.

use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::handler::{INVALID_REQUEST, PARSE_ERROR, unaddressed_error};
use crate::tasks::Tasks;

/// One client's messages.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// The line that is being read; kept here because a read may be dropped in the middle.
    line: Vec<u8>,
    /// The rest of a line that was too long is being skipped.
    skipping: bool,
    /// A reply to a line that was no message, which has not been handed to the writer yet.
    owed: Option<Vec<u8>>,
    output: Option<mpsc::Sender<Vec<u8>>>,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    /// The writer runs as a task of `tasks` until the transport is closed.
    pub(super) fn new<W>(input: R, output: W, tasks: &Tasks) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, receiver) = mpsc::channel(QUEUED_LINES);
        tasks.start(write(output, receiver));
        Self { input: BufReader::new(input), line: Vec::new(), skipping: false, owed: None, output: Some(sender) }
    }

    /// The next line without its end; `None` at the end of the input. Safe to drop: what was read stays in `self`.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // A last line without its end is a message that was cut off.
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |index| index + 1);
            let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let too_long = self.line.len() + piece.len() > LONGEST_LINE;
            if too_long {
                self.line = Vec::new();
                self.skipping = true;
            } else if !self.skipping {
                self.line.extend_from_slice(piece);
            }
            self.input.consume(taken);
            if end.is_some() {
                if std::mem::take(&mut self.skipping) {
                    return Ok(Some(Line::TooLong));
                }
                return Ok(Some(Line::Whole(std::mem::take(&mut self.line))));
            }
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let line = serde_json::to_vec(&message)?;
            let output = output.ok_or(io::ErrorKind::NotConnected)?;
            output.send(line).await.map_err(|_closed| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(owed) = &self.owed {
                // The copy is taken only once there is room, so that a dropped `receive` neither loses nor repeats it.
                let room = self.output.as_ref()?.reserve().await.ok()?;
                room.send(owed.clone());
                self.owed = None;
            }
            let line = match self.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(fault) => {
                    tracing::error!(%fault, "standard input cannot be read");
                    return None;
                }
            };
            match line {
                Line::TooLong => self.owe(INVALID_REQUEST, "the line is too long"),
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => match read(&line) {
                    Ok(message) => return Some(message),
                    Err(NoMessage::Ignored) => {}
                    Err(NoMessage::NotJson) => self.owe(PARSE_ERROR, "the line is not JSON"),
                    Err(NoMessage::Batch) => self.owe(INVALID_REQUEST, "batches are not served"),
                    Err(NoMessage::Shape) => self.owe(INVALID_REQUEST, "the line is not a JSON-RPC message"),
                },
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The writer writes what is queued, then ends.
        self.output = None;
        Ok(())
    }
}

impl<R> Lines<R> {
    fn owe(&mut self, code: i32, message: &str) {
        self.owed = Some(unaddressed_error(code, message).to_string().into_bytes());
    }
}

#[derive(Debug, PartialEq, Eq)]
enum NoMessage {
    NotJson,
    Batch,
    Shape,
    /// A notification that this library does not know; one never answers a notification.
    Ignored,
}

fn read(line: &[u8]) -> Result<ClientJsonRpcMessage, NoMessage> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if let Ok(message) = serde_json::from_slice(line) {
        return Ok(message);
    }
    match serde_json::from_slice::<Value>(line) {
        Err(_not_json) => Err(NoMessage::NotJson),
        Ok(Value::Array(_)) => Err(NoMessage::Batch),
        Ok(value) if value.get("id").is_none() && value.get("method").is_some_and(Value::is_string) => {
            Err(NoMessage::Ignored)
        }
        Ok(_) => Err(NoMessage::Shape),
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(fault) = written.await {
            tracing::debug!(%fault, "standard output is closed");
            return;
        }
    }
}

/// As much as the HTTP side takes, so that no call works on one and not on the other.
const LONGEST_LINE: usize = (8 << 20) + (64 << 10);

/// A client that does not read holds its own answers up, not our memory.
const QUEUED_LINES: usize = 16;
