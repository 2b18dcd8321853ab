//! The record of who called what, for whoever has to answer for it later.
//!
//! One line of JSON for each exchange with a known credential or about a login, and one for each act of an operator. Each carries the
//! SHA-256 over the hash of the line before it and its own bytes, so what was changed, taken out, moved or cut
//! afterwards is found; the newest hash has to be kept elsewhere by whoever fears that all of it is written anew. No
//! line has a token, a session's id or a call's arguments, unless an operator asked for those; a hash of the arguments'
//! bytes stands in their place. The `session` argument of the sandbox's tools is an argument like any other: it opens a
//! shell, so no part of it is told.
//!
//! ```text
//! line      what one line says                          chain    how lines hang together
//! file      the files of a state, and their turns       verify   what was done to them since
//! log       the one task that writes, off the path of a request
//! kept      the file that it writes to                    acts     what operators did
//! ```

pub mod acts;
pub mod chain;
pub mod file;
mod kept;
pub mod line;
mod log;
pub mod verify;

use serde::{Deserialize, Serialize};

pub use chain::Record;
pub use file::{Folder, Identity};
pub use line::{Arguments, Entry, Stated};
pub use log::{Log, Next, Slot};

/// How an edge records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Whether the first bytes of a call's arguments are written too.
    pub arguments: bool,
    /// Whether a call that cannot be recorded is refused.
    pub refuses: bool,
    /// A file of so many bytes is followed by another.
    pub rotate_bytes: u64,
    /// So is that of a day (UTC) that is over.
    pub daily: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { arguments: false, refuses: false, rotate_bytes: 64 << 20, daily: false }
    }
}
