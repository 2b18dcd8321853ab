//! What each system does in a way of its own.
//!
//! ```text
//!                      Linux                          FreeBSD                    others
//! this very program    /proc/self/exe, also after     its path                   its path
//!                      an upgrade on disk
//! rights given up      capabilities, new ones by      tracing and core files     none
//!                      exec, tracing, core files
//! a folder's socket    through the folder's           by its path alone, of at   by its path alone
//!                      descriptor, of any length      most 103 bytes
//! ```

#[cfg_attr(target_os = "linux", path = "sys/linux.rs")]
#[cfg_attr(target_os = "freebsd", path = "sys/freebsd.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "freebsd")), path = "sys/other.rs")]
mod own;

#[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux has a better way"))]
mod by_path;

pub(crate) use own::{Itself, confine, set_name, through};
