//! Files that the command line writes and the running service reads, one JSON document each.
//!
//! [`Writer`] changes a document under a lock and replaces its file whole; killed anywhere, it leaves the old one or the
//! new. [`Watched`] is the reading side: it sees a change of the file at the very next question, and keeps the last good
//! reading when the file is broken. What stands in a file is said by its [`Document`].
//!
//! Secrets stand in them as [`Digest`]s.

mod digest;
mod fault;
mod place;
mod reading;
mod watched;
mod writer;

pub use digest::{Digest, NoRandomness};
pub use fault::{ChangeError, FormatError, StoreError};
pub use reading::{Loose, MOST_BYTES, ReadError, Warning};
pub use watched::{Opener, Opening, View, Watched};
pub use writer::Writer;

pub(crate) use digest::{hex, random};
pub(crate) use place::{Place, Step};

#[cfg(test)]
pub(crate) use reading::open;

/// What one kind of file holds.
pub trait Document: Sized + Send + 'static {
    /// What messages call it, such as `credential store`.
    const CALLED: &'static str;

    /// What stands for a file that is not there.
    fn empty() -> Self;

    /// # Errors
    /// With the place, and never with what stands there: that could be a secret.
    fn parse(text: &[u8]) -> Result<Self, FormatError>;

    /// # Errors
    /// When it cannot be written, such as one that is too large to be read again.
    fn render(&self) -> Result<Vec<u8>, FormatError>;

    /// What an operator should know about a good one.
    fn warning(&self) -> Option<Warning> {
        None
    }
}
