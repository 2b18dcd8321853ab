//! A command's three streams.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::output::Stream;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// Standard output and standard error, read together.
pub(super) struct Pipes {
    stdout: Pipe,
    stderr: Pipe,
}

struct Pipe {
    reader: Option<Reader>,
    buffer: Vec<u8>,
}

impl Pipes {
    pub(super) fn new(stdout: Reader, stderr: Reader) -> Self {
        Self { stdout: Pipe::new(stdout), stderr: Pipe::new(stderr) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stdout.reader.is_some() || self.stderr.reader.is_some()
    }

    /// What either stream has next; `None` when both have ended. Dropping the future loses nothing.
    pub(super) async fn read(&mut self) -> Option<(Stream, &[u8])> {
        while self.is_open() {
            let (stream, length) = tokio::select! {
                length = self.stdout.read(), if self.stdout.reader.is_some() => (Stream::Stdout, length),
                length = self.stderr.read(), if self.stderr.reader.is_some() => (Stream::Stderr, length),
            };
            if length > 0 {
                return Some((stream, self.buffer(stream, length)));
            }
        }
        None
    }

    fn buffer(&self, stream: Stream, length: usize) -> &[u8] {
        let pipe = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        pipe.buffer.get(..length).unwrap_or_default()
    }
}

impl Pipe {
    fn new(reader: Reader) -> Self {
        Self { reader: Some(reader), buffer: vec![0; BUFFER] }
    }

    /// Reads once; 0 at the end, after which the pipe is closed.
    async fn read(&mut self) -> usize {
        let Some(reader) = &mut self.reader else { return 0 };
        let length = reader.read(&mut self.buffer).await.unwrap_or(0);
        if length == 0 {
            self.reader = None;
        }
        length
    }
}

/// Writes a command's standard input and closes it. A command that does not read is no fault.
pub(super) async fn feed(stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>, bytes: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(bytes)) = (stdin, bytes) {
        let _ = stdin.write_all(&bytes).await;
        let _ = stdin.shutdown().await;
    }
}

/// What a pipe holds.
const BUFFER: usize = 64 << 10;
