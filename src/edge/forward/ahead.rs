//! The beginning of an answer, read before any of it is passed on.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::edge::Cause;

use super::relay::Relay;

/// Reads until `enough` says so, or to the end; never more than `most`. It is for the caller to put it back.
pub(super) async fn read(
    relay: &mut Relay,
    most: usize,
    mut enough: impl FnMut(&[u8]) -> bool,
) -> Result<Bytes, Cause> {
    let mut text = BytesMut::new();
    while let Some(frame) = relay.frame().await {
        let Ok(frame) = frame else { return Err(relay.why()) };
        let data = frame.into_data().unwrap_or_default();
        if text.len() + data.len() > most {
            return Err(Cause::WorkerAnswerUnusable("it is too large for what was asked"));
        }
        text.extend_from_slice(&data);
        if enough(&text) {
            break;
        }
    }
    Ok(text.freeze())
}
