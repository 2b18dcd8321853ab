//! The operator's side of a service: what is asked of it on this machine, and never over the network.

pub mod ending;
pub mod monitoring;
pub mod operator;
pub mod socket;
pub mod talk;
pub mod words;
