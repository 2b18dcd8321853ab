//! OAuth 2.1 for clients that log in by clicking: accounts are let in by an invite, and everything ends.
//!
//! This room knows nothing of the path of a request through the edge. [`state`] is what outlives a process, with every
//! rule that must hold across processes; [`keeper`] is how the edge, which opens no file, reads and changes it.
//! [`issuer`] is somebody else's authorization server, for an operator who has one already.

pub mod issuer;
pub mod keeper;
pub mod state;
