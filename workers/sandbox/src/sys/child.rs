//! What a first process does between its birth and its program.
//!
//! It is a copy of one thread of a threaded program: no allocation, no lock, no destructor, only syscalls. The C
//! library's own `setuid` family is out of bounds too, since it would signal threads that do not exist here.

use std::ffi::c_char;
use std::os::fd::RawFd;

use super::spawn::Identity;

/// Everything the child needs, made ready before the clone.
pub(super) struct Plan {
    pub(super) program: RawFd,
    /// Ends with a null pointer.
    pub(super) arguments: *const *const c_char,
    pub(super) socket: RawFd,
    pub(super) null: RawFd,
    pub(super) identity: Identity,
}

/// Waits for the byte that says that the maps are written, becomes who it is to be, and runs the program.
pub(super) fn run(plan: &Plan) -> ! {
    let environment: [*const c_char; 1] = [std::ptr::null()];
    #[expect(unsafe_code, reason = "between clone and exec only bare syscalls are allowed")]
    // SAFETY: every pointer is to the stack or to what the parent laid ready and this process has its own copy of; the
    // descriptors were open at the clone; nothing here allocates or locks.
    unsafe {
        for standard in 0..3 {
            check(libc::c_long::from(libc::dup2(plan.null, standard)), 121);
        }
        check(libc::c_long::from(libc::dup2(plan.socket, SOCKET)), 122);
        // At once and not only at the exec: while this process waits, it must not keep open what others wait to see
        // closed.
        check(libc::syscall(libc::SYS_close_range, SOCKET + 1, plan.program - 1, 0), 123);
        check(libc::syscall(libc::SYS_close_range, plan.program + 1, u32::MAX, 0), 123);
        let mut byte = 0u8;
        if libc::recv(SOCKET, (&raw mut byte).cast(), 1, 0) != 1 {
            libc::_exit(0);
        }
        let none = 0u64;
        check(
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const none,
                std::ptr::null::<u64>(),
                8usize,
            ),
            124,
        );
        match plan.identity {
            Identity::Root => {
                check(libc::syscall(libc::SYS_setgroups, 0usize, std::ptr::null::<u32>()), 125);
                check(libc::syscall(libc::SYS_setresgid, 0, 0, 0), 125);
                check(libc::syscall(libc::SYS_setresuid, 0, 0, 0), 125);
            }
            Identity::Capable => keep_capabilities(),
        }
        libc::syscall(
            libc::SYS_execveat,
            plan.program,
            c"".as_ptr(),
            plan.arguments,
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
        libc::_exit(127)
    }
}

/// Carries every capability over the coming exec, which for a user other than 0 only the ambient set does.
fn keep_capabilities() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let mut header = Header { version: 0x2008_0522, pid: 0 };
    // Effective, permitted, inheritable; low halves, then high halves.
    let mut sets = [0u32; 6];
    #[expect(unsafe_code, reason = "between clone and exec only bare syscalls are allowed")]
    // SAFETY: version 3 of the calls reads and writes one header and two times three words, all on this stack.
    unsafe {
        check(libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()), 126);
        let [_, low, low_inheritable, _, high, high_inheritable] = &mut sets;
        *low_inheritable = *low;
        *high_inheritable = *high;
        check(libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()), 126);
        for capability in 0..64 {
            // The kernel refuses numbers that it does not know, and there is nothing to do about it.
            libc::syscall(libc::SYS_prctl, libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0);
        }
    }
}

/// Ends the child with a code that tells which step was refused.
fn check(result: libc::c_long, code: i32) {
    if result < 0 {
        super::kernel::exit_now(code);
    }
}

/// Where a first process finds its socket.
pub(crate) const SOCKET: RawFd = 3;
