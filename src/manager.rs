//! What a service manager hands in, and what it is told.
//!
//! systemd passes listening sockets and secrets to a service and hears from it when it is ready, reads its files again, or
//! stops; other managers do none of this, and then there is nothing here to see. All of it is for the process that the
//! manager started: a child of ours gets none of these variables and none of these sockets but the one that is its own.

pub mod credential;
mod notify;
mod sockets;

pub use notify::Notify;
pub use sockets::{Addresses, Sockets, SocketsFault};
