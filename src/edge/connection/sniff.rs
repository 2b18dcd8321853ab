//! Which protocol a plain connection speaks, by its first bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::Protocol;

/// A stream whose first bytes have been looked at.
pub(super) struct Sniffed<S> {
    first: Bytes,
    stream: S,
}

/// Waits for the first bytes, and tells HTTP/2's preface from everything else where it is not `known` what is spoken. Dropping it
/// drops the stream.
pub(super) async fn protocol<S>(mut stream: S, known: Option<Protocol>) -> io::Result<(Sniffed<S>, Protocol)>
where
    S: AsyncRead + Unpin,
{
    let mut first = Vec::with_capacity(PREFACE.len());
    let protocol = loop {
        let mut rest = [0; PREFACE.len()];
        let wanted = PREFACE.len() - first.len();
        let read = stream.read(rest.get_mut(..wanted).unwrap_or_default()).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        first.extend_from_slice(rest.get(..read).unwrap_or_default());
        if let Some(protocol) = known {
            break protocol;
        }
        if !PREFACE.starts_with(&first) {
            break Protocol::Http1;
        }
        if first.len() == PREFACE.len() {
            break Protocol::Http2;
        }
    };
    Ok((Sniffed { first: first.into(), stream }, protocol))
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let ready = self.first.len().min(into.remaining());
        into.put_slice(self.first.get(..ready).unwrap_or_default());
        self.first.advance(ready);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::{PREFACE, Protocol, protocol};
    use tokio::io::AsyncReadExt;

    async fn check(sent: &[u8]) -> Option<Protocol> {
        let (mut sniffed, protocol) = protocol(sent, None).await.ok()?;
        let mut read = Vec::new();
        sniffed.read_to_end(&mut read).await.expect("the bytes");
        assert_eq!(read, sent, "nothing is lost");
        Some(protocol)
    }

    #[tokio::test]
    async fn the_preface_alone_is_http2() {
        assert_eq!(check(PREFACE).await, Some(Protocol::Http2));
        assert_eq!(check(&[&PREFACE[..], b"more"].concat()).await, Some(Protocol::Http2));
        for other in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"P OST", b"PRI * HTTP/2.0\r\n\r\nSX", b"\0", b"PUT"] {
            assert_eq!(check(other).await, Some(Protocol::Http1), "{other:?}");
        }
        for unfinished in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n"] {
            assert_eq!(check(unfinished).await, None, "{unfinished:?}");
        }
    }
}
