//! OAuth 2.1 for clients that log in by clicking: accounts are let in by an invite, and everything ends.
//!
//! This room knows nothing of the path of a request through the edge. [`state`] is what outlives a process, with every
//! rule that must hold across processes; [`keeper`] is how the edge, which opens no file, reads and changes it.
//! [`documents`] are clients that need not register. [`issuer`] is somebody else's authorization server, for an operator who has one already.
//! [`Service`] is what clients and people speak with:
//!
//! ```text
//! client                                       person
//!   metadata    where everything is
//!   register    what it is called, where an answer may go
//!   authorize   ───────────────────────────>   consent   who asks, for what, where the answer goes; the invite
//!   token       <───────── code ────────────   allowed
//!   revoke
//! ```
//!
//! Nobody is sent to an address that its client has not registered, and nobody is sent anywhere without having clicked:
//! anyone may register a client, so a redirect without a person would be one for everybody.

mod ask;
mod caller;
mod destination;
pub mod documents;
mod event;
mod fault;
mod form;
mod gate;
pub mod issuer;
pub mod keeper;
mod metadata;
mod pages;
mod public_url;
mod register;
mod reply;
mod revoke;
mod route;
pub mod scope;
mod seal;
mod service;
mod settings;
pub mod state;
mod token;

pub use destination::{BadDestination, sendable};
pub use event::{Event, What};
pub use metadata::Advice;
pub use pages::tokens_alone;
pub use public_url::{BadPublicUrl, PublicUrl};
pub use route::Route;
pub use service::Service;
pub use settings::{Guesses, Settings};
