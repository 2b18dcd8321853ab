//! Starting one command in the tenant's world.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Gid, Pid, Resource, Rlimit, Uid, WaitOptions, fchdir, getrlimit, setrlimit, wait};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_res_gid, set_thread_res_uid,
};

use super::{ALL_CHILDREN, Fault, Init, broker, filter, root, terminal};
use crate::backend::linux::wire::{self, Bounds, FileFault, GUEST, HEAD_ROOM, Report, Setup, Start, Status, Step};
use crate::sys::{kernel, spawn};

/// Gives up, for this process and all that it forks, what no command may have. Returns what each command loads itself.
pub(super) fn confine(setup: &Setup) -> Result<Option<Vec<filter::Program>>, Fault> {
    bound(&setup.limits)?;
    #[cfg(feature = "test-door")]
    if setup.unconfined {
        return Ok(None);
    }
    for capability in CapabilitySet::all().iter() {
        // Numbers that this kernel does not know are refused, and cannot be held either.
        let _ = remove_capability_from_bounding_set(capability);
    }
    set_no_new_privs(true).map_err(io::Error::from).map_err(Fault::at("set no_new_privs"))?;
    let tenant = filter::for_tenant()?;
    if setup.nested {
        // The first process still has to mount a `/proc` for each command.
        return Ok(Some(vec![tenant, filter::for_command()]));
    }
    tenant.load().map_err(Fault::at("load the seccomp filter"))?;
    Ok(Some(vec![filter::for_command()]))
}

fn bound(limits: &Bounds) -> Result<(), Fault> {
    let limit = |resource: Resource, value: u64| {
        // A host may hold the service itself to less than a tenant is to have; nobody here can raise that.
        let value = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
            .map_err(io::Error::from)
            .map_err(Fault::at(format!("set the limit {resource:?}")))
    };
    // One byte is no core file, and the one bound that also keeps the host's own handler of core files, which may be a
    // program that the kernel starts as root, from being given a tenant's memory. The filter keeps it from being lowered.
    limit(Resource::Core, 1)?;
    limit(Resource::Nproc, limits.processes + HEAD_ROOM)?;
    limit(Resource::Fsize, limits.file_size)?;
    limit(Resource::Memlock, 64 << 20)?;
    // Of these the kernel has one table for all that the service's user has made, tenants' included, and each of them
    // alone could fill it: the usual one of a small host for signals, and two message queues of the usual size.
    limit(Resource::Sigpending, getrlimit(Resource::Sigpending).maximum.map_or(SIGNALS, |all| SIGNALS.min(all / 8)))?;
    limit(Resource::Msgqueue, 200 << 10)?;
    if limits.yielding {
        // A service that is held so low itself that this is no lower stays as it is.
        let _ = rustix::process::nice(YIELDING);
    }
    match limits.memory_each {
        Some(memory) => limit(Resource::Data, memory),
        None => Ok(()),
    }
}

/// The score of commands: when memory runs out, the kernel is to end them and not the first process.
pub(super) fn expendable() -> String {
    let own: i32 = std::fs::read_to_string(OOM_SCORE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    (own + 500).min(1000).to_string()
}

/// Forks for a command. Returns in the first process alone.
pub(super) fn start(init: &Init, start: Start, descriptors: Vec<OwnedFd>) -> io::Result<Pid> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or(io::Error::from(io::ErrorKind::InvalidData));
    let streams = match start.terminal {
        Some(_) => None,
        None => Some([if start.stdin { next()? } else { null()? }, next()?, next()?]),
    };
    let text = match start.command {
        Some(ref text) => Text::Inline(text.clone()),
        None => Text::File(next()?),
    };
    let cgroup = if start.cgroup { Some(next()?) } else { None };
    let namespaces = if init.nested { spawn::NEW_PID_NAMESPACE | spawn::NEW_MOUNT_NAMESPACE } else { 0 };
    let born = init.single.fork(namespaces, cgroup.as_ref().map(AsFd::as_fd))?;
    // A folder of the host's, which no command may come near.
    drop(cgroup);
    match born {
        Some(born) => Ok(born.pid),
        None if init.nested => nested(init, &start, streams.as_ref(), text),
        None => shell(init, &start, streams.as_ref(), text),
    }
}

/// The tenant's own null device, so that no descriptor of a command leads to a mount of the host.
fn null() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Ok(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The first process of a command's own pid namespace: tells of the shell's end, then reaps until nothing is left.
fn nested(init: &Init, start: &Start, streams: Option<&[OwnedFd; 3]>, text: Text) -> ! {
    // The numbers that its processes know each other by must be those that `/proc` shows.
    if let Err(fault) = root::renew_proc() {
        give_up(init, start.id, Step::Fork, &io::Error::from_raw_os_error(fault.errno));
    }
    let shell_pid = match init.single.fork(0, None) {
        Ok(Some(born)) => born.pid,
        Ok(None) => shell(init, start, streams, text),
        Err(fault) => give_up(init, start.id, Step::Fork, &fault),
    };
    // The command's streams end with the command: this process must not keep them open. The socket is number 3.
    if kernel::close_from(4).is_err() {
        kernel::exit_now(1);
    }
    loop {
        match wait(WaitOptions::from_bits_retain(ALL_CHILDREN)) {
            Ok(Some((pid, status))) if pid == shell_pid => {
                let status = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Status::Code(code),
                    (None, signal) => Status::Signal(signal.unwrap_or(0)),
                };
                let _ =
                    wire::send(init.socket.as_fd(), &Report::Ended { id: start.id, status, last: nothing_left() }, &[]);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => kernel::exit_now(0),
        }
    }
}

/// Reaps what has ended already; true when there is no child at all, which for process 1 means no other process.
fn nothing_left() -> bool {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::from_bits_retain(ALL_CHILDREN)) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Becomes the command's shell.
fn shell(init: &Init, start: &Start, streams: Option<&[OwnedFd; 3]>, text: Text) -> ! {
    let id = start.id;
    let confined = init.filters.is_some();
    let become_user = || if confined { become_guest(false) } else { Ok(()) };
    // Best effort: a host may give every process the highest score already.
    let _ = std::fs::write(OOM_SCORE, &init.expendable);
    if let Err(fault) = detach(streams).and_then(|()| become_user()).and_then(|()| bound_command(init)) {
        give_up(init, id, Step::Become, &fault);
    }
    let terminal = match start.terminal.as_ref().map(terminal::make).transpose() {
        Ok(terminal) => terminal,
        Err(fault) => give_up(init, id, Step::Terminal, &fault),
    };
    if let Err(fault) = enter(start.cwd.as_deref()) {
        give_up(init, id, Step::Directory, &fault);
    }
    let prepared = text.prepare(start.login);
    let (arguments, script) = match prepared {
        Ok(prepared) => prepared,
        Err(fault) => give_up(init, id, Step::Execute, &fault),
    };
    let with: Vec<_> = terminal.iter().map(AsFd::as_fd).collect();
    if wire::send(init.socket.as_fd(), &Report::Started { id }, &with).is_err() {
        kernel::exit_now(1);
    }
    let environment = match &start.terminal {
        Some(terminal) => terminal::environment(&init.environment, terminal),
        None => init.environment.clone(),
    };
    kernel::reset_signals();
    if start.full {
        // Writing is refused instead of ending whoever tries, who may be about to delete something.
        kernel::ignore_file_size_signal();
        if setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) }).is_err() {
            kernel::exit_now(NOT_EXECUTABLE);
        }
    }
    // From here on the socket is gone, and with it every way to tell more than an exit code.
    let closed = match &script {
        Some(script) => kernel::duplicate_onto(script.as_fd(), 3).and_then(|()| kernel::close_from(4)),
        None => kernel::close_from(3),
    };
    // It is closed by its number above and must not be closed again by its owner.
    std::mem::forget(script);
    if closed.is_err() {
        kernel::exit_now(NOT_EXECUTABLE);
    }
    for filter in init.filters.iter().flatten() {
        if filter.load().is_err() {
            kernel::exit_now(NOT_EXECUTABLE);
        }
    }
    let _ = spawn::execute(c"/bin/sh", &arguments, &environment);
    kernel::exit_now(NOT_EXECUTABLE)
}

/// Goes to where the command is to begin.
fn enter(cwd: Option<&str>) -> io::Result<()> {
    let folder = broker::base(cwd).map_err(|fault| {
        io::Error::from_raw_os_error(if let FileFault::Errno(errno) = fault { errno } else { libc::ENOTDIR })
    })?;
    Ok(fchdir(folder)?)
}

fn detach(streams: Option<&[OwnedFd; 3]>) -> io::Result<()> {
    rustix::process::setsid()?;
    for (number, stream) in (0..).zip(streams.into_iter().flatten()) {
        kernel::duplicate_onto(stream.as_fd(), number)?;
    }
    Ok(())
}

/// Holds the command to what tenants may have. Processes only now, after the change of user: the kernel refuses the coming
/// exec of a process that changed to a user who has too many already. Files only now as well: the kernel passes on no
/// more descriptors of a user than the sender itself may have open, and where tenants are one user, what one of them has
/// on the way must not keep the first process of another from answering.
fn bound_command(init: &Init) -> io::Result<()> {
    for (resource, most) in [(Resource::Nproc, init.processes), (Resource::Nofile, init.open_files)] {
        let most = getrlimit(resource).maximum.map_or(most, |bound| bound.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Becomes the tenant's user, for good and without a capability.
pub(super) fn become_guest(broker: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(GUEST), Gid::from_raw(GUEST));
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    if broker {
        kernel::ignore_file_size_signal();
    }
    Ok(())
}

fn give_up(init: &Init, id: u64, step: Step, fault: &io::Error) -> ! {
    let errno = fault.raw_os_error().unwrap_or(libc::EIO);
    let _ = wire::send(init.socket.as_fd(), &Report::NotStarted { id, step, errno }, &[]);
    kernel::exit_now(NOT_EXECUTABLE)
}

/// A command's text as it came.
enum Text {
    Inline(String),
    File(OwnedFd),
}

impl Text {
    /// The shell's arguments, and the descriptor that it reads the text from when no argument may be so long.
    fn prepare(self, login: bool) -> io::Result<(Vec<CString>, Option<OwnedFd>)> {
        let (text, script) = match self {
            Self::Inline(text) => (text, None),
            Self::File(descriptor) => {
                let mut file = File::from(descriptor);
                file.rewind()?;
                if file.metadata()?.len() < LONGEST_ARGUMENT {
                    let mut text = String::new();
                    file.read_to_string(&mut text)?;
                    (text, None)
                } else {
                    (READ_AND_EVALUATE.to_owned(), Some(OwnedFd::from(file)))
                }
            }
        };
        let flag = if login { c"-lc" } else { c"-c" };
        Ok((vec![c"sh".to_owned(), flag.to_owned(), CString::new(text)?], script))
    }
}

/// The variables as a program is given them.
pub(super) fn environment(setup: &Setup) -> Vec<CString> {
    setup.environment.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
}

/// The descriptor is closed before the text runs, so that a command has the three standard ones alone.
const READ_AND_EVALUATE: &str = "__text=$(cat <&3); exec 3<&-; eval \"$__text\"";

/// How many signals may wait for a tenant's processes; an eighth of the host's where that is less.
const SIGNALS: u64 = 4096;

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// A tenth of the weight of a process with the usual priority.
const YIELDING: i32 = 10;

/// The kernel's bound on one argument of a program, its ending zero byte included.
const LONGEST_ARGUMENT: u64 = 128 << 10;

/// What shells say of a program that is there and cannot be run.
const NOT_EXECUTABLE: i32 = 126;
