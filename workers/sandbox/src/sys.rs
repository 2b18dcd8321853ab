//! The one room for syscalls that no safe crate offers.
//!
//! Every function here is safe to call and says why. What `rustix` offers safely is called where it is needed, not
//! here.

#[cfg(target_os = "linux")]
pub(crate) mod child;
#[cfg(target_os = "linux")]
pub(crate) mod disk;
#[cfg(all(target_os = "linux", feature = "egress"))]
pub(crate) mod interfaces;
#[cfg(target_os = "linux")]
pub(crate) mod kernel;
pub(crate) mod random;
pub(crate) mod reaper;
#[cfg(target_os = "linux")]
pub(crate) mod spawn;
pub(crate) mod terminal;
