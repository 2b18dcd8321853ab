//! What the two sides of an exchange mean to each other.

use crate::edge::{Call, Era, Session};

use super::farewell::Farewell;

/// What the client's side of an exchange means to the worker's.
pub(super) struct Manner {
    /// A stream that may stay silent for ever, and ends when the edge stops or the credential is revoked.
    pub(super) endless: bool,
    /// What was said before may come again on it.
    pub(super) replays: bool,
    /// The worker would take our leaving for a cancellation that the client did not mean.
    pub(super) outlives_client: bool,
    pub(super) opening: bool,
    /// The answer says which revisions are served, and the edge has a word in that.
    pub(super) discovers: bool,
    /// The answer shows the tools; and says how long it may be kept.
    pub(super) lists: Option<Caches>,
    pub(super) farewell: Farewell,
}

/// Whether a list may be kept by its reader, and says so.
#[derive(Clone, Copy)]
pub(super) struct Caches(pub(super) bool);

impl Manner {
    pub(super) fn of(call: &Call, session: Option<&Session>) -> Self {
        let message = match call {
            Call::Message(message) => message,
            Call::Stream | Call::End => {
                let endless = matches!(call, Call::Stream);
                return Self {
                    endless,
                    replays: endless,
                    outlives_client: false,
                    opening: false,
                    discovers: false,
                    lists: None,
                    farewell: Farewell::Nothing,
                };
            }
        };
        let listens = message.era == Era::Modern && message.kind.method() == Some("subscriptions/listen");
        let resumable = match message.era {
            Era::Modern => false,
            Era::Opening => true,
            // Where the edge alone has the session, there is no stream to come back to.
            Era::Legacy => session.is_some_and(|session| session.upstream.is_some()),
        };
        let farewell = match message.kind.id() {
            Some(id) if listens => Farewell::Completed(id.clone()),
            Some(id) => Farewell::Fault { id: id.clone(), resumable },
            None => Farewell::Nothing,
        };
        Self {
            endless: listens,
            replays: false,
            outlives_client: message.era == Era::Legacy && session.is_some_and(|session| session.upstream.is_none()),
            opening: message.era == Era::Opening,
            discovers: message.era == Era::Modern && message.kind.method() == Some("server/discover"),
            lists: (message.kind.method() == Some("tools/list")).then_some(Caches(message.era == Era::Modern)),
            farewell,
        }
    }
}
