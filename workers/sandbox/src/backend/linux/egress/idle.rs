//! Seeing that nothing moves any more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When a byte last moved on any of the streams that it watches. Clones are one.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    began: Instant,
    /// Milliseconds since then.
    moved: Arc<AtomicU64>,
}

/// A stream whose bytes are noticed.
pub(super) struct Watched<S> {
    stream: S,
    meter: Meter,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { began: kit::clock::now(), moved: Arc::default() }
    }

    pub(super) fn watch<S>(&self, stream: S) -> Watched<S> {
        Watched { stream, meter: self.clone() }
    }

    /// Waits until no byte has moved for so long.
    pub(super) async fn still(&self, limit: Duration) {
        loop {
            let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
            let end = self.began + moved + limit;
            if kit::clock::now() >= end {
                return;
            }
            tokio::time::sleep_until(end.into()).await;
        }
    }

    fn note(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.meter.note();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.meter.note();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
