//! The whole worker: its tools on a real socket or pipe, above the Linux backend on this machine's own kernel.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod endings;
#[cfg(test)]
mod files;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod ownership;
#[cfg(test)]
mod protocol;
#[cfg(test)]
#[path = "../support/skip.rs"]
mod skip;
mod soft;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod world;
