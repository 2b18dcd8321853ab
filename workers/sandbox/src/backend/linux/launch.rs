//! Starting a tenant's first process, up to the moment when its world stands.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fstat, memfd_create, open};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getgid, getuid, pidfd_send_signal, waitid};
use rustix::thread::CapabilitySet;

use super::cgroup::TenantCgroup;
use super::layout::{RANGE, step};
use super::supplies;
use super::wire::{self, Bind, GUEST, Order, Report, Setup, Source};
use crate::backend::BackendError;
use crate::sys::kernel::{self, NO_DEVICES, NO_SUID};
use crate::sys::spawn::{self, FirstProcess, Identity};

/// The program that first processes run, open.
#[derive(Debug)]
pub(super) struct Program {
    file: OwnedFd,
    arguments: Vec<CString>,
}

impl Program {
    pub(super) fn open(path: &Path, arguments: &[String]) -> Result<Self, BackendError> {
        let opening = || step(format!("open the program {}", path.display()));
        let file =
            open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|fault| opening()(fault.into()))?;
        let file = executable_by_all(file).map_err(opening())?;
        let file = rustix::io::fcntl_dupfd_cloexec(file, ABOVE_STANDARD).map_err(|fault| opening()(fault.into()))?;
        let mut list = vec![c"playground".to_owned()];
        for argument in arguments {
            list.push(CString::new(argument.as_str()).map_err(|fault| opening()(fault.into()))?);
        }
        Ok(Self { file, arguments: list })
    }
}

/// The same program if a stranger may execute it, as a tenant's root is one; else a copy that has no owner.
fn executable_by_all(program: OwnedFd) -> io::Result<OwnedFd> {
    if fstat(&program)?.st_mode & 0o001 != 0 {
        return Ok(program);
    }
    let mut copy = File::from(memfd_create("playground", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::from(program), &mut copy)?;
    // A file that is open for writing cannot be executed; this descriptor is the only one.
    let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Which users of the host a tenant consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    Range(u32),
    Single,
}

impl Users {
    /// The host's id of the tenant's own user.
    pub(super) fn guest(self) -> u32 {
        match self {
            Self::Range(first) => first + GUEST,
            Self::Single => getuid().as_raw(),
        }
    }
}

/// A first process whose world stands.
#[derive(Debug)]
pub(super) struct Launched {
    /// Names the process beyond doubt.
    pub(super) handle: OwnedFd,
    pub(super) socket: OwnedFd,
    /// Of the tenant's proxy, if it has one.
    pub(super) listeners: Vec<OwnedFd>,
}

/// Something of the host that a tenant finds as a folder.
#[derive(Debug)]
pub(super) enum Given<'a> {
    Folder(&'a Path),
    /// A mount that is attached nowhere.
    Mount(OwnedFd),
    /// A folder of the disk that is handed in whole.
    Part(&'static str),
}

/// Starts a first process and waits until its world stands. Blocks; on failure nothing is left running.
pub(super) fn launch(
    program: &Program,
    users: Users,
    cgroup: Option<&TenantCgroup>,
    mut setup: Setup,
    given: Vec<(&'static str, Given<'_>)>,
    disk: Option<BorrowedFd<'_>>,
) -> Result<Launched, BackendError> {
    let mut mounts = Vec::new();
    setup.disk = disk.is_some();
    for (target, given) in given {
        let source = match (given, users) {
            (Given::Folder(path), Users::Single) => Source::Path(path.to_owned()),
            (Given::Folder(path), Users::Range(_)) => {
                // The tenant's root cannot walk to the service's own folders, so it is handed the mounts.
                mounts.push(detached(path).map_err(step(format!("prepare {} for the tenant", path.display())))?);
                Source::Descriptor
            }
            (Given::Mount(mount), _) => {
                mounts.push(mount);
                Source::Descriptor
            }
            (Given::Part(name), _) => Source::Part(name.to_owned()),
        };
        setup.binds.push(Bind { target: target.to_owned(), source });
    }
    if let Users::Range(_) = users {
        for bind in &mut setup.supplies {
            if let Source::Path(path) = &bind.source {
                mounts.push(supplies::detached(path)?);
                bind.source = Source::Descriptor;
            }
        }
    }
    let (socket, theirs) = pair().map_err(step("make a socket for a first process"))?;
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .and_then(|null| rustix::io::fcntl_dupfd_cloexec(null, ABOVE_STANDARD))
        .map_err(|fault| step("open /dev/null")(fault.into()))?;
    let birthplace =
        cgroup.map(TenantCgroup::birthplace).transpose().map_err(step("open the tenant's cgroup"))?.flatten();
    let born = spawn::first_process(&FirstProcess {
        program: program.file.as_fd(),
        arguments: &program.arguments,
        socket: theirs.as_fd(),
        null: null.as_fd(),
        cgroup: birthplace.as_ref().map(AsFd::as_fd),
        identity: match users {
            Users::Range(_) => Identity::Root,
            Users::Single => Identity::Capable,
        },
    })
    .map_err(step(NEW_NAMESPACES))?;
    drop(theirs);
    let ready = prepare(born.pid, users, cgroup).and_then(|()| {
        rustix::net::send(&socket, &[1], SendFlags::NOSIGNAL)
            .map_err(|fault| step("let the first process run")(fault.into()))?;
        let mounts: Vec<_> = disk.into_iter().chain(mounts.iter().map(AsFd::as_fd)).collect();
        wire::send(socket.as_fd(), &Order::Setup(Box::new(setup)), &mounts)
            .map_err(step("describe the tenant's world"))?;
        answer(&socket, &born.handle)
    });
    match ready {
        Ok(listeners) => Ok(Launched { handle: born.handle, socket, listeners }),
        Err(fault) => {
            end(&born.handle);
            Err(fault)
        }
    }
}

/// Ends a first process and waits for the kernel's word that its namespace is empty.
pub(super) fn end(handle: &OwnedFd) {
    let _ = pidfd_send_signal(handle, Signal::KILL);
    let _ =
        waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::from_bits_retain(ALL_CHILDREN));
}

/// Does from outside what a process cannot do to itself: its groups and the users of its namespace.
fn prepare(pid: Pid, users: Users, cgroup: Option<&TenantCgroup>) -> Result<(), BackendError> {
    if let Some(cgroup) = cgroup {
        cgroup.adopt(pid).map_err(step("put the first process into its cgroups"))?;
    }
    let write = |name: &str, text: String| {
        let path = format!("/proc/{}/{name}", pid.as_raw_nonzero());
        fs::write(path, text).map_err(step(format!("write the {name} of a user namespace")))
    };
    match users {
        Users::Range(first) => {
            set_oom_score(pid);
            write("gid_map", format!("0 {first} {RANGE}\n"))?;
            write("uid_map", format!("0 {first} {RANGE}\n"))
        }
        Users::Single => {
            write("setgroups", "deny".to_owned())?;
            write("gid_map", format!("{GUEST} {} 1\n", getgid().as_raw()))?;
            write("uid_map", format!("{GUEST} {} 1\n", getuid().as_raw()))
        }
    }
}

/// Puts the tenant before the host's own services when the machine's memory runs out. Only a privileged writer also sets
/// how low the tenant may set it itself; without that, the first process would be the only one to stay so high.
fn set_oom_score(pid: Pid) {
    if rustix::thread::capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_RESOURCE)) {
        let own: i32 =
            fs::read_to_string("/proc/self/oom_score_adj").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let _ = fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero()), (own + 300).min(1000).to_string());
    }
}

/// Waits for the word that the world stands, and takes the listeners that come with it.
fn answer(socket: &OwnedFd, handle: &OwnedFd) -> Result<Vec<OwnedFd>, BackendError> {
    let waiting = || step("wait for the tenant's world to stand");
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    let deadline = Timespec { tv_sec: SECONDS_TO_STAND, tv_nsec: 0 };
    if poll(&mut ready, Some(&deadline)).map_err(|fault| waiting()(fault.into()))? == 0 {
        return Err(waiting()(io::ErrorKind::TimedOut.into()));
    }
    match wire::receive::<Report>(socket.as_fd(), &mut vec![0; wire::PACKET]).map_err(waiting())? {
        Some((Report::Ready, listeners)) => Ok(listeners),
        Some((Report::Refused { step: what, errno }, _)) => Err(step(what)(io::Error::from_raw_os_error(errno))),
        Some(_) => Err(waiting()(io::ErrorKind::InvalidData.into())),
        None => {
            let status = waitid(
                WaitId::PidFd(handle.as_fd()),
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::from_bits_retain(ALL_CHILDREN),
            );
            let code = status.ok().flatten().and_then(|status| status.exit_status());
            Err(step("start the first process's program")(io::Error::other(match code {
                Some(125) => "its user could not be taken on".to_owned(),
                Some(126) => "its capabilities could not be kept".to_owned(),
                Some(127) => "the program could not be executed; can every user read and execute it?".to_owned(),
                Some(code) => format!("it ended with code {code}"),
                None => "it ended by a signal".to_owned(),
            })))
        }
    }
}

/// A copy of the mount at a folder, attached nowhere, that gives no rights by set-user-id files or devices.
fn detached(path: &Path) -> io::Result<OwnedFd> {
    let mount = open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    kernel::restrict_mount(mount.as_fd(), c"", NO_SUID | NO_DEVICES, false)?;
    Ok(mount)
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let theirs = rustix::io::fcntl_dupfd_cloexec(theirs, ABOVE_STANDARD)?;
    Ok((ours, theirs))
}

/// What is being done when the host forbids namespaces altogether.
pub(super) const NEW_NAMESPACES: &str = "make new namespaces";

/// Numbers from here on are never those that a first process gets its own descriptors at.
const ABOVE_STANDARD: i32 = 10;

/// Making the world takes milliseconds; a host so busy that this is not enough cannot run commands either.
const SECONDS_TO_STAND: i64 = 20;

/// `__WALL`: a first process sends no signal when it ends, so only this finds it.
pub(super) const ALL_CHILDREN: u32 = 0x4000_0000;
