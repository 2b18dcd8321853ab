//! Reading a body under its cap and clocks.

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::edge::{Cause, RequestBody, Reserved};

use super::Arrival;

/// The whole body, or why it was given up. Dropped here, the body's connection ends with it.
pub(super) async fn read(mut body: RequestBody, arrival: Arrival, reserved: &mut Reserved) -> Result<Bytes, Cause> {
    let began = kit::clock::now();
    let declared = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if declared.is_some_and(|length| length > arrival.most) {
        return Err(Cause::BodyTooLarge { most: arrival.most });
    }
    // A declared length costs its budget at once, so that a body is never refused half read for want of it.
    reserved.grow(declared.unwrap_or(0))?;
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    let mut length = 0_usize;
    loop {
        let spent = began.elapsed();
        let wait = arrival.idle.min(arrival.total.saturating_sub(spent));
        let Ok(frame) = timeout(wait, body.frame()).await else { return Err(Cause::BodyTooSlow) };
        let Some(frame) = frame else { break };
        let Ok(frame) = frame else { return Err(Cause::BodyBroken) };
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > arrival.most {
            return Err(Cause::BodyTooLarge { most: arrival.most });
        }
        if declared.is_none() {
            reserved.grow(data.len())?;
        }
        let spent = began.elapsed();
        let expected = arrival.least_rate.saturating_mul(spent.saturating_sub(arrival.idle).as_secs());
        if u64::try_from(length).unwrap_or(u64::MAX) < expected {
            return Err(Cause::BodyTooSlow);
        }
        // Most bodies come in one piece, which is then kept as it is.
        if first.is_empty() && whole.is_empty() {
            first = data;
        } else {
            if whole.is_empty() {
                whole.reserve(declared.unwrap_or(first.len() + data.len()));
                whole.extend_from_slice(&first);
                first = Bytes::new();
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}
