//! The edge by real sockets: a scripted worker behind it, raw connections before it.

mod bounds;
mod bridge;
mod cases;
#[cfg(feature = "tls")]
pub(crate) mod certificate;
mod clocks;
#[cfg(feature = "tls")]
mod encrypted;
mod eras;
mod exchange;
mod faults;
mod flooded;
mod frames;
mod half_sent;
mod identity;
mod killed;
mod labelled;
mod listen;
pub(crate) mod login;
mod logins;
mod malformed;
mod multiplexed;
mod operated;
mod proxied;
mod reach;
mod redirect;
mod refusals;
mod reload;
mod revisions;
mod rows;
mod seen;
mod sessions;
pub(crate) mod setting;
mod stop;
mod talk;
mod twice;
mod unanswered;
mod unread;
pub(crate) mod worker;
