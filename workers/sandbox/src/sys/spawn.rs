//! Making processes: in new namespaces from a threaded program, and by fork from a program with one thread.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

use super::child;

pub(crate) const NEW_PID_NAMESPACE: u64 = 0x2000_0000;
pub(crate) const NEW_MOUNT_NAMESPACE: u64 = 0x0002_0000;

/// User, mount, pid, network, System V IPC, host name and cgroup namespaces.
pub(crate) const ALL_NAMESPACES: u64 =
    0x1000_0000 | NEW_MOUNT_NAMESPACE | NEW_PID_NAMESPACE | 0x4000_0000 | 0x0800_0000 | 0x0400_0000 | 0x0200_0000;

/// A first process to start in namespaces of its own.
pub(crate) struct FirstProcess<'a> {
    /// The program, open; executed by descriptor.
    pub(crate) program: BorrowedFd<'a>,
    pub(crate) arguments: &'a [CString],
    /// Becomes descriptor 3; the process runs the program when one byte has arrived on it.
    pub(crate) socket: BorrowedFd<'a>,
    /// Becomes descriptors 0, 1 and 2.
    pub(crate) null: BorrowedFd<'a>,
    /// The cgroup to be born in.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    pub(crate) identity: Identity,
}

/// Who a first process is in its user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// User 0 of a mapped range.
    Root,
    /// The one mapped user, with every capability of the namespace.
    Capable,
}

/// A process and the descriptor that names it beyond doubt.
pub(crate) struct Born {
    pub(crate) pid: Pid,
    pub(crate) handle: OwnedFd,
}

/// Starts a first process. It waits for a byte on its socket, so that its maps can be written first.
pub(crate) fn first_process(spec: &FirstProcess<'_>) -> io::Result<Born> {
    // Everything the child needs lies ready before the clone: it must not allocate, since another thread of ours may
    // hold the allocator's lock at that instant.
    let mut arguments: Vec<*const c_char> = spec.arguments.iter().map(|argument| argument.as_ptr()).collect();
    arguments.push(std::ptr::null());
    let plan = child::Plan {
        program: spec.program.as_raw_fd(),
        arguments: arguments.as_ptr(),
        socket: spec.socket.as_raw_fd(),
        null: spec.null.as_raw_fd(),
        identity: spec.identity,
    };
    // No exit signal: the program's other waiters never see this child, and we reap it by its handle.
    match clone(ALL_NAMESPACES, 0, spec.cgroup)? {
        Some(born) => Ok(born),
        None => child::run(&plan),
    }
}

/// Proof that this process has one thread, in which a fork copies the whole program.
pub(crate) struct SingleThread(());

impl SingleThread {
    /// `None` when the kernel counts more threads than one, or does not say.
    pub(crate) fn prove() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"))?;
        (threads.trim() == "1").then_some(Self(()))
    }

    /// Forks, into another cgroup or a new pid namespace if so asked. `None` is the child.
    pub(crate) fn fork(&self, namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Option<Born>> {
        clone(namespaces, libc::SIGCHLD.unsigned_abs().into(), cgroup)
    }
}

/// Runs another program in this process; returns only when that was refused.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    #[expect(unsafe_code, reason = "std's exec changes signals and descriptors on its own account")]
    // SAFETY: both arrays end with a null pointer and point to C strings that outlive the call.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    io::Error::last_os_error()
}

/// `clone3` as a fork: the child continues here, with `None`.
fn clone(flags: u64, exit_signal: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Option<Born>> {
    #[repr(C)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    let mut handle: libc::c_int = -1;
    let mut arguments = Arguments {
        flags: flags | PIDFD,
        pidfd: (&raw mut handle) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    if let Some(cgroup) = cgroup {
        arguments.flags |= INTO_CGROUP;
        arguments.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    #[expect(unsafe_code, reason = "std cannot fork into namespaces or cgroups")]
    // SAFETY: the structure has the kernel's layout and size, and its one pointer outlives the call. Memory is copied,
    // not shared, so the child owns its own copy of everything; what it may do is bounded by the two callers: one runs
    // `child::run`, which neither allocates nor locks, the other has proven that no other thread holds anything.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<Arguments>()) };
    match result {
        0 => Ok(None),
        pid if pid > 0 => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
            #[expect(unsafe_code, reason = "the call above returns a bare number")]
            // SAFETY: CLONE_PIDFD stored a fresh descriptor there that nobody else knows.
            let handle = unsafe { OwnedFd::from_raw_fd(handle) };
            Ok(Some(Born { pid, handle }))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

const PIDFD: u64 = 0x1000;

/// `CLONE_INTO_CGROUP`, which does not fit libc's type for it.
const INTO_CGROUP: u64 = 0x2_0000_0000;
