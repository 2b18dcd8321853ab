//! Single calls to the kernel, wrapped.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What a mount forbids; each may be added by a process that is not the mount's owner, none removed.
pub(crate) const READ_ONLY: u64 = 0x1;
pub(crate) const NO_SUID: u64 = 0x2;
pub(crate) const NO_DEVICES: u64 = 0x4;
pub(crate) const NO_EXEC: u64 = 0x8;

/// Adds attributes to the mount that a descriptor or a path below it names.
pub(crate) fn restrict_mount(at: BorrowedFd<'_>, path: &CStr, attributes: u64, recursive: bool) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = MountAttributes { set: attributes, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    #[expect(unsafe_code, reason = "neither rustix nor libc wraps mount_setattr")]
    // SAFETY: the path is a C string and the structure has the layout and the size that the kernel's first version of
    // it had; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    let mut request = Request { name: [0; 16], flags: INTERFACE_UP, rest: [0; 22] };
    for (to, from) in request.name.iter_mut().zip(b"lo") {
        *to = *from;
    }
    #[expect(unsafe_code, reason = "the request that sets interface flags has no safe wrapper")]
    // SAFETY: SIOCSIFFLAGS reads one `struct ifreq` of 40 bytes, which is what the structure above lays out.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SET_INTERFACE_FLAGS, &raw const request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Begins a session without the keys of the one that this process was started in.
pub(crate) fn leave_keys_behind() -> io::Result<()> {
    #[expect(unsafe_code, reason = "keyctl has no safe wrapper")]
    // SAFETY: with a null name the call reads no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor from `first` on.
///
/// Only a process that is about to run another program, or to end, may call it.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "close_range has no safe wrapper")]
    // SAFETY: the caller is a fork that drops nothing afterwards: it executes a program or leaves by `_exit`.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Keeps every descriptor from `first` on out of the programs that this process starts.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "close_range has no safe wrapper")]
    // SAFETY: nothing is closed here; a flag is set on whatever descriptors there are.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes an open descriptor the process's own number `to`, and inheritable.
pub(crate) fn duplicate_onto(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix's dup2 wants to own the target, which std may own already")]
    // SAFETY: the source is open; the target is one of 0 to 3, which the forked child alone uses from here on.
    let result = unsafe { libc::dup2(from.as_raw_fd(), to) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over a descriptor that the program was started with; `None` when it is not open.
pub(crate) fn inherited(number: RawFd) -> Option<OwnedFd> {
    #[expect(unsafe_code, reason = "an inherited descriptor has only a number")]
    // SAFETY: the descriptor is only asked about, by number.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return None;
    }
    #[expect(unsafe_code, reason = "an inherited descriptor has only a number")]
    // SAFETY: it is open, and a program's inherited descriptors have no owner until it takes them; this is called once.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(owned)
}

/// Blocks the signal that tells of ended children and returns a descriptor that becomes readable by it.
pub(crate) fn watch_children() -> io::Result<OwnedFd> {
    let set = signal_set(&[libc::SIGCHLD]);
    #[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
    // SAFETY: the set is initialised; a null old set is allowed.
    let masked = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if masked < 0 {
        return Err(io::Error::last_os_error());
    }
    #[expect(unsafe_code, reason = "signalfd has no safe wrapper")]
    // SAFETY: -1 asks for a new descriptor; the set is initialised.
    let descriptor = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    #[expect(unsafe_code, reason = "the call above returns a bare number")]
    // SAFETY: the kernel has just made it and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Gives every signal its default meaning and lets all through, as a program expects to be started.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        #[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
        // SAFETY: the default disposition runs no code of ours; the kernel refuses the two signals that have no other.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    let none = signal_set(&[]);
    #[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
    // SAFETY: the set is initialised; a null old set is allowed.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Makes a write beyond the file size limit an error instead of the process's end.
pub(crate) fn ignore_file_size_signal() {
    #[expect(unsafe_code, reason = "signal dispositions have no safe wrapper")]
    // SAFETY: an ignored signal runs no code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Ends this process without running destructors or flushing what the fork's parent had buffered.
pub(crate) fn exit_now(code: i32) -> ! {
    #[expect(unsafe_code, reason = "std's exit runs handlers that belong to the fork's parent")]
    // SAFETY: `_exit` has no precondition.
    unsafe {
        libc::_exit(code)
    }
}

/// Lets the runtime watch a descriptor.
pub(crate) fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the runtime cannot know what a type of its caller does with its descriptor")]
    // SAFETY: an `OwnedFd` names the same open descriptor for its whole life, and the result owns it.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    Ok(watched?)
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    #[expect(unsafe_code, reason = "signal sets have no safe constructor")]
    // SAFETY: all zeroes is a valid `sigset_t`, and the call below makes it the empty set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    #[expect(unsafe_code, reason = "signal sets have no safe constructor")]
    // SAFETY: the set is ours and valid.
    unsafe {
        libc::sigemptyset(&raw mut set);
    }
    for signal in signals {
        #[expect(unsafe_code, reason = "signal sets have no safe constructor")]
        // SAFETY: the set is ours and valid, the signals are constants of libc.
        unsafe {
            libc::sigaddset(&raw mut set, *signal);
        }
    }
    set
}

/// `SIOCSIFFLAGS`, which libc does not define for this target.
const SET_INTERFACE_FLAGS: libc::Ioctl = 0x8914;

/// `IFF_UP` as the request's field has it.
const INTERFACE_UP: libc::c_short = 1;

/// `KEYCTL_JOIN_SESSION_KEYRING`.
const JOIN_SESSION_KEYRING: libc::c_int = 1;
