//! Clients log in by real sockets: what they find, what a person is asked, what they get, and what they do not.

mod doors;
mod face;
mod flow;
mod gate;
mod metadata;
mod pages;
pub(crate) mod program;
mod redirects;
mod refusals;
