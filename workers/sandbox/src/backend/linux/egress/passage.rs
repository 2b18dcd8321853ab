//! Passing bytes on, both ways, until both have ended.

use std::io;
use std::pin::pin;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, copy, split};

use super::idle::Meter;
use super::limits::Limits;

/// Joins two streams that `meter` watches. Each way ends by itself, as a program may say all it has to say and go on
/// listening; but one that has gone altogether looks the same, so from then on less patience is had with the other way.
pub(super) async fn join<A, B>(one: A, other: B, meter: &Meter, limits: &Limits)
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let ((from_one, to_one), (from_other, to_other)) = (split(one), split(other));
    let (mut there, mut back) = (pin!(pass(from_one, to_other)), pin!(pass(from_other, to_one)));
    let first = tokio::select! {
        ended = &mut there => ended.map(|()| true),
        ended = &mut back => ended.map(|()| false),
    };
    // A way that broke off leaves nothing to wait for.
    let Ok(there_ended) = first else { return };
    tokio::select! {
        _ended = &mut back, if there_ended => {}
        _ended = &mut there, if !there_ended => {}
        () = meter.still(limits.half) => {}
    }
}

/// Passes on what comes, then that no more comes.
async fn pass<A: AsyncRead, B: AsyncWrite>(mut from: ReadHalf<A>, mut to: WriteHalf<B>) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}
