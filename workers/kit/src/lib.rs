//! What the edge and its workers share, and what any worker needs to stand behind the edge.
//!
//! The vocabulary comes first, and the edge uses nothing else of this crate: who a call is for ([`Tenant`]), what must
//! not be printed ([`Secret`]), how an edge names both on the loopback hop ([`header`]), the one reader of the clock
//! ([`clock`]) and the one door through which tasks are started ([`tasks`]).

pub mod clock;
pub mod header;
mod secret;
pub mod tasks;
mod tenant;

pub use secret::Secret;
pub use tenant::{Tenant, TenantError};
