//! The syscalls a tenant may not make.
//!
//! A list of what is denied, not of what is allowed: an allow-list breaks programs with every new C library. What is
//! newer than this list is answered with "no such call", so that a program falls back to what it used before. The
//! large part is loaded once, into the first process, since loading it costs half a millisecond; the small part, which
//! the first process must not have, is loaded by each command.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::Fault;

/// A filter that is ready to be loaded.
pub(super) struct Program(BpfProgram);

impl Program {
    pub(super) fn load(&self) -> std::io::Result<()> {
        seccompiler::apply_filter(&self.0).map_err(|fault| match fault {
            seccompiler::Error::Prctl(fault) | seccompiler::Error::Seccomp(fault) => fault,
            other @ (seccompiler::Error::Backend(_)
            | seccompiler::Error::EmptyFilter
            | seccompiler::Error::ThreadSync(_)) => std::io::Error::other(other),
        })
    }
}

/// What the first process and everything it forks may not do.
pub(super) fn for_tenant() -> Result<Program, Fault> {
    let unbuildable = |fault: seccompiler::BackendError| {
        Fault::at(format!("build the seccomp filter: {fault}"))(std::io::Error::from_raw_os_error(libc::EINVAL))
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let argument = |index: u8, values: &[u64]| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        values
            .iter()
            .map(|value| {
                let equal = SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *value)?;
                SeccompRule::new(vec![equal])
            })
            .collect()
    };
    rules.insert(libc::SYS_socket, argument(0, &DENIED_FAMILIES).map_err(unbuildable)?);
    rules.insert(libc::SYS_socketpair, argument(0, &DENIED_FAMILIES).map_err(unbuildable)?);
    rules.insert(libc::SYS_ioctl, argument(1, &DENIED_IOCTLS).map_err(unbuildable)?);
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(unbuildable)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM.unsigned_abs()), architecture)
            .map_err(unbuildable)?;
    let body = BpfProgram::try_from(filter).map_err(unbuildable)?;
    let mut program = vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(JUMP_IF_AT_LEAST, 0, 1, FIRST_UNKNOWN),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        // Room that is set aside beyond a file's end is bounded by no limit on its size, nor by a flag that lets it only
        // be appended to: with it a pile could fill the host's disk. Programs know file systems that cannot do it.
        instruction(JUMP_IF_EQUAL, 0, 4, number(libc::SYS_fallocate)),
        instruction(LOAD, 0, 0, SECOND_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 1, 0, KEEP_SIZE),
        instruction(JUMP_IF_EQUAL, 0, 1, KEEP_SIZE | ZERO_RANGE),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP.unsigned_abs()),
        instruction(LOAD, 0, 0, NUMBER),
        // Programs that keep secrets lower the bound of core files themselves and give up if they cannot. They are told
        // that it was done, since no core is written as it is, and the bound stays what it has to be.
        instruction(JUMP_IF_EQUAL, 0, 2, number(libc::SYS_setrlimit)),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 7, 8, libc::RLIMIT_CORE),
        instruction(JUMP_IF_EQUAL, 0, 7, number(libc::SYS_prlimit64)),
        instruction(LOAD, 0, 0, SECOND_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 0, 5, libc::RLIMIT_CORE),
        // Only reading it is as harmless as ever.
        instruction(LOAD, 0, 0, THIRD_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 0, 2, 0),
        instruction(LOAD, 0, 0, THIRD_ARGUMENT + 4),
        instruction(JUMP_IF_EQUAL, 1, 0, 0),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO),
    ];
    program.extend(body);
    Ok(Program(program))
}

/// What a command may not do beyond that: make namespaces. `clone3` hides its flags behind a pointer that a filter
/// cannot follow, so it does not exist; C libraries then use `clone`.
pub(super) fn for_command() -> Program {
    Program(vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(JUMP_IF_EQUAL, 0, 1, number(libc::SYS_clone3)),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        instruction(JUMP_IF_EQUAL, 0, 3, number(libc::SYS_clone)),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        instruction(JUMP_IF_ANY_BIT, 0, 1, NEW_NAMESPACES),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

fn number(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Offsets in the structure that a filter reads: the call's number, and the low halves of its arguments.
const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;
const THIRD_ARGUMENT: u32 = 32;

/// Modes of `fallocate`.
const KEEP_SIZE: u32 = 0x1;
const ZERO_RANGE: u32 = 0x10;

/// Every `CLONE_NEW…` flag that fits the call's low half.
const NEW_NAMESPACES: u32 = 0x7e02_0080;

/// One above the newest call that was known when this list was written (`listns`). The x32 variants of the x86 calls
/// begin far above it, so they do not exist either.
const FIRST_UNKNOWN: u32 = 471;

/// `AF_ALG`, `AF_VSOCK`, `AF_PACKET`, and what else reaches the kernel or the host by a path of its own: `AF_KEY`,
/// `AF_RDS`, `AF_TIPC`, `AF_BLUETOOTH`, `AF_NFC`, `AF_XDP`, `AF_CAN`, `AF_QIPCRTR`, `AF_SMC`.
const DENIED_FAMILIES: [u64; 12] = [38, 40, 17, 15, 21, 30, 31, 39, 44, 29, 42, 43];

/// `TIOCSTI` and `TIOCLINUX`: typing into someone else's terminal.
const DENIED_IOCTLS: [u64; 2] = [0x5412, 0x541c];

const DENIED: &[i64] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    // Namespaces.
    libc::SYS_setns,
    libc::SYS_unshare,
    // Kernel interfaces with a record of their own.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_lookup_dcookie,
    libc::SYS_vmsplice,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    // Other processes.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
];

/// `open_tree_attr`, younger than libc's list.
const OPEN_TREE_ATTR: i64 = 467;
