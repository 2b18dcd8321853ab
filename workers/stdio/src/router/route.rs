//! What a router answers: whether a call begins, and where a line goes.

use crate::outlet::{Mouth, Said};

/// Why a call cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// A call with this id is running in the session.
    SameId,
    /// As many calls run as may.
    Full,
    /// As many subscriptions are open as may.
    Subscribed,
    /// The child has ended.
    Ended,
}

/// A call that has begun: its number, and its text for the child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) key: u64,
    pub(crate) line: Vec<u8>,
}

/// What becomes of a line of the child.
#[derive(Debug)]
pub(crate) enum Route {
    /// It is said there, within the call of this number if it is one's.
    To(Mouth, Said, Option<u64>),
    /// The child is answered by us.
    Back(Vec<u8>),
    /// Nobody waits for it.
    Nobody,
}
