//! The Linux backend on this machine's own kernel.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod appends;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod death;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod egress;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod files;
#[cfg(test)]
mod full;
#[cfg(test)]
mod host;
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod making;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod ordinary_user;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod owner;
#[cfg(test)]
mod siege;
#[cfg(test)]
#[path = "../support/skip.rs"]
mod skip;
#[cfg(test)]
mod soft;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod supplies;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod world;
