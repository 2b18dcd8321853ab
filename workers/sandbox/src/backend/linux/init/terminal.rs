//! A terminal for a command, made inside the tenant's own devices.
//!
//! Only its other side leaves the sandbox. The terminal that a person sits at is never a tenant's: who holds a terminal
//! can type into it.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::backend::Terminal;
use crate::sys::kernel;

/// Makes the terminal, the session's own and its standard streams, and returns the side that leaves.
///
/// To be called as the tenant's user, who then owns it, by the first process of a session.
pub(super) fn make(wanted: &Terminal) -> io::Result<OwnedFd> {
    let outer = open("/dev/ptmx", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    unlockpt(&outer)?;
    // Not by its name, under which another could stand meanwhile.
    let inner = ioctl_tiocgptpeer(&outer, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    tcsetwinsize(&inner, Winsize { ws_row: wanted.rows, ws_col: wanted.columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    rustix::process::ioctl_tiocsctty(&inner)?;
    for number in 0..3 {
        kernel::duplicate_onto(inner.as_fd(), number)?;
    }
    Ok(outer)
}

/// The variables of a command that a person watches: what the terminal understands, and no word that there is none.
pub(super) fn environment(variables: &[CString], wanted: &Terminal) -> Vec<CString> {
    let replaced = |variable: &&CString| {
        ["TERM=", "PAGER=", "GIT_PAGER="].iter().all(|name| !variable.as_bytes().starts_with(name.as_bytes()))
    };
    let kind: String = wanted.kind.chars().filter(|c| c.is_ascii_alphanumeric() || "-+._".contains(*c)).collect();
    let kind = if kind.is_empty() { "dumb" } else { &kind };
    let kind = CString::new(format!("TERM={kind}"));
    variables.iter().filter(replaced).cloned().chain(kind).collect()
}
