//! The edge by real sockets: a scripted worker behind it, raw connections before it.

mod cases;
mod clocks;
mod exchange;
mod multiplexed;
mod refusals;
mod sessions;
mod setting;
mod stop;
mod talk;
mod worker;
