//! The credential store: one JSON file, read by the running edge and written by the command line.
//!
//! [`Credentials`] is the reading side. It answers who presented a token, and sees a change of the file at the very next
//! question. [`Ledger`] is the writing side: it mints, lists and revokes under a lock, and replaces the file whole.
//!
//! Two forms are read. Ours holds SHA-256 hashes under `credentials` and carries a format version; the original's holds
//! the tokens themselves under `tokens`. A store keeps its form until [`Ledger::upgrade`]: hashes never stand under
//! `tokens`, where the original's binary would take them for bearers.
//!
//! Ours can say when a credential ends by itself; the original's cannot.
//!
//! Deliberately absent: a secret that could be shown again (ours is known to its owner alone).

mod credentials;
mod fault;
mod format;
pub mod last_used;
mod ledger;
mod set;
mod token;

pub use credentials::{ClearRule, Credentials, Life, Verdict};
pub use fault::LedgerError;
pub use ledger::{Ledger, Listed, Minted, NewCredential, Old, Rotated, Rotation, Upgraded};
pub use token::ids_meant;
