//! Trying from inside what a tenant must not be able to do.
//!
//! It is done by a fork that is the guest, with the very filter that commands have, and by bare calls instead of a shell,
//! so that it says the same in every system that a tenant may be given.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, chmod, ftruncate, link, open, rename, statvfs, unlink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::{Init, job};
use crate::backend::linux::wire::{self, HOME, Report, SelfTest};
use crate::sys::kernel;

/// Runs in a fork of the first process, and does not come back.
pub(super) fn run(init: &Init, test: &SelfTest) -> ! {
    #[cfg(feature = "test-door")]
    let keeps = test.broken == Some(wire::Check::Capabilities);
    #[cfg(not(feature = "test-door"))]
    let keeps = false;
    let mut faults = Vec::new();
    if init.filters.is_some() && !keeps && job::become_guest(true).is_err() {
        faults.push("the tenant's user cannot be taken on".to_owned());
    }
    if init.filters.iter().flatten().any(|filter| filter.load().is_err()) {
        faults.push("the filter of calls cannot be loaded".to_owned());
    }
    for twin in &test.twins {
        faults.extend(append_only(Path::new(twin)));
    }
    #[cfg(feature = "test-door")]
    let _listeners = reachable(test);
    for address in &test.listeners {
        if connects(address) {
            faults.push(format!("the host is reached at {address}"));
        }
    }
    if !matches!(fs::symlink_metadata(&test.canary), Err(fault) if fault.kind() == std::io::ErrorKind::NotFound) {
        faults.push("a file of the host is found by its path".to_owned());
    }
    if open(&test.system, OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o600)).is_ok() {
        faults.push(format!("{} can be written", test.system));
    }
    if init.filters.is_some() {
        faults.extend(confined());
    }
    if let Some(bound) = test.disk {
        match statvfs(HOME) {
            Ok(found) if found.f_blocks.saturating_mul(found.f_frsize) <= bound => {}
            Ok(_) => faults.push(format!("{HOME} has more room than its {bound} bytes")),
            Err(fault) => faults.push(format!("the room of {HOME} cannot be asked for: {fault}")),
        }
    }
    let _ = wire::send(init.socket.as_fd(), &Report::SelfTested { id: test.id, faults }, &[]);
    kernel::exit_now(0)
}

/// What is wrong with a file that may only be appended to, an empty one.
fn append_only(twin: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    let mut refused = |what: &str, tried: rustix::io::Result<()>| {
        if tried.is_ok() {
            faults.push(format!("{what} is not refused to {}", twin.display()));
        }
    };
    let open = |flags| open(twin, flags | OFlags::CLOEXEC, Mode::empty());
    let appended = open(OFlags::WRONLY | OFlags::APPEND).map(File::from);
    refused("truncation", open(OFlags::WRONLY | OFlags::TRUNC).map(drop));
    refused("overwriting", open(OFlags::WRONLY).map(drop));
    refused("overwriting", open(OFlags::RDWR).map(drop));
    refused("a change of mode", chmod(twin, Mode::from_raw_mode(0o600)));
    refused("another name", link(twin, twin.with_added_extension("link")));
    refused("renaming", rename(twin, twin.with_added_extension("moved")));
    let mut content = Vec::new();
    let works = appended.and_then(|mut file| {
        file.write_all(b"x").map_err(|_fault| Errno::IO)?;
        refused("truncation", ftruncate(&file, 0));
        File::from(open(OFlags::RDONLY)?).read_to_end(&mut content).map_err(|_fault| Errno::IO)
    });
    refused("removal", unlink(twin));
    if works.is_err() || content != b"x" {
        faults.push(format!("{} cannot be appended to", twin.display()));
    }
    faults
}

/// Whether somebody listens at an address. One that does not answer is as good as none.
fn connects(address: &std::net::SocketAddr) -> bool {
    let tried = socket(address).and_then(|socket| match connect(&socket, address) {
        Err(Errno::INPROGRESS) => {
            let patience = Timespec { tv_sec: SECONDS_TO_CONNECT, tv_nsec: 0 };
            let answered = poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&patience))? > 0;
            Ok(answered && sockopt::socket_error(&socket)?.is_ok())
        }
        other => other.map(|()| true),
    });
    tried.unwrap_or(false)
}

fn socket(address: &std::net::SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// What this process has that no command may have.
fn confined() -> Vec<String> {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return vec!["/proc/self/status cannot be read".to_owned()];
    };
    let value = |name: &str| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
    let mut faults = Vec::new();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if value(set).is_none_or(|held| held.bytes().any(|digit| digit != b'0')) {
            faults.push(format!("a capability is left in {set}"));
        }
    }
    if value("NoNewPrivs:").as_deref() != Some("1") {
        faults.push("no_new_privs is not set".to_owned());
    }
    if value("Seccomp:").as_deref() != Some("2") {
        faults.push("no filter of calls is loaded".to_owned());
    }
    faults
}

/// Makes the host's listeners as good as reachable, for a test that the test sees it.
#[cfg(feature = "test-door")]
fn reachable(test: &SelfTest) -> Vec<OwnedFd> {
    let listen = |address: &std::net::SocketAddr| {
        let socket = socket(address)?;
        rustix::net::bind(&socket, address)?;
        rustix::net::listen(&socket, 1)?;
        rustix::io::Result::Ok(socket)
    };
    let broken = test.broken == Some(wire::Check::Host);
    test.listeners.iter().filter(|_| broken).filter_map(|address| listen(address).ok()).collect()
}

/// A connection within one machine takes microseconds.
const SECONDS_TO_CONNECT: i64 = 1;
