//! What the edge and its workers share, and what any worker needs to stand behind the edge.
//!
//! The vocabulary comes first, and the edge uses nothing else of this crate: who a call is for ([`Tenant`]), what must
//! not be printed ([`Secret`]), how an edge names both on the loopback hop ([`header`]), the one reader of the clock
//! ([`clock`]), the one door through which tasks are started ([`tasks`]), the way a small file is replaced ([`durable`]), what
//! lies in a file's place ([`regular`]), the wait for a lock ([`patience`]), a socket that listens where it was asked to
//! ([`listen`]), a fault in one line ([`chain()`]), how an event stream is read ([`sse`]), and what a host is ([`host`])
//! whose address may be nobody's to reach ([`special`]).
//!
//! Then comes what a worker needs: the trait that it implements ([`worker`]), served over loopback HTTP ([`http`]) or over
//! standard input and output ([`stdio`]).

pub mod ballast;
mod chain;
pub mod clock;
pub mod durable;
#[cfg(feature = "mcp")]
mod handler;
pub mod header;
pub mod host;
#[cfg(feature = "http")]
pub mod http;
pub mod listen;
pub mod patience;
pub mod regular;
mod secret;
pub mod special;
pub mod sse;
#[cfg(feature = "stdio")]
pub mod stdio;
pub mod tasks;
mod tenant;
#[cfg(feature = "mcp")]
pub mod worker;

pub use chain::chain;
pub use secret::Secret;
pub use tenant::{Tenant, TenantError};
