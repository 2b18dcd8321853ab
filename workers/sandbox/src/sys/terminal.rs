//! A terminal for a program that is about to be started.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{ioctl_tiocsctty, setsid};

/// Has the program control the terminal that is its standard input, as the first process of a session of its own. It must
/// not be given a process group besides.
pub(crate) fn control(command: &mut Command) {
    #[expect(unsafe_code, reason = "only the child itself can begin a session, between its birth and its program")]
    // SAFETY: what runs there makes two system calls and neither allocates nor locks, so that no thread's lock that was
    // held at the fork is waited for.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(ioctl_tiocsctty(rustix::stdio::stdin())?)
        });
    }
}
