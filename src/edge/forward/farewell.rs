//! What the edge says at the end of a stream in the worker's place.

use bytes::Bytes;

use crate::edge::RequestId;

/// What is said when a stream ends before the worker has ended it.
pub(super) enum Farewell {
    Nothing,
    /// A subscription is complete when the edge stops.
    Completed(RequestId),
    /// A call whose answer is still owed gets an error in its place.
    Fault {
        id: RequestId,
        /// Its client may come back for the answer, so a worker that ends the stream without one has not failed.
        resumable: bool,
    },
}

impl Farewell {
    /// The call that the stream owes an answer.
    pub(super) fn awaits(&self) -> Option<&RequestId> {
        match self {
            Self::Fault { id, .. } => Some(id),
            Self::Nothing | Self::Completed(_) => None,
        }
    }
}

/// The end of a subscription.
pub(super) fn completed(id: &RequestId) -> Bytes {
    let id = id.raw();
    event(
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
        .as_bytes(),
    )
}

/// One event with this message.
pub(super) fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"].concat().into()
}
