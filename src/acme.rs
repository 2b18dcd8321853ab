//! Certificates that a certificate authority gives by itself (RFC 8555).
//!
//! It runs in the edge, which has the network, and opens no file: what must outlive the process goes to whoever keeps it.
//! It promises: an order is placed when a certificate is missing, or when a third of its time is left; a try is kept
//! before it is made, so that no restart makes more of them; after a failure the pause grows to a day, and is never
//! shorter than the authority asks for. While there is none, or the one there is ends, everything else is served on.
//!
//! ```text
//! settings   which authority, for which names, and how a name is proved
//! kept       what outlives the process: the account, the certificate, the tries
//! schedule   when to ask
//! order      one question, from the account to the certificate
//! transport  how it is asked
//! ```
//!
//! Deliberately absent: wildcards and DNS-01, which want a key to the zone in this process.

mod kept;
#[cfg(feature = "tls")]
mod order;
#[cfg(feature = "tls")]
mod schedule;
mod settings;
#[cfg(feature = "tls")]
mod transport;

pub use kept::{Issued, Kept};
pub use settings::{Proof, STAGING, STANDARD, Settings};

#[cfg(feature = "tls")]
pub use driver::{Acme, Keep};

#[cfg(feature = "tls")]
mod driver;
