//! The Linux backend on this machine's own kernel.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod commands;
#[cfg(test)]
mod world;
