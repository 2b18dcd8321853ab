//! OAuth 2.1 for clients that log in by clicking: accounts are let in by an invite, and everything ends.
//!
//! This room knows nothing of the path of a request through the edge. [`state`] is what outlives a process, with every
//! rule that must hold across processes; [`keeper`] is how the edge, which opens no file, reads and changes it.

pub mod keeper;
pub mod state;
