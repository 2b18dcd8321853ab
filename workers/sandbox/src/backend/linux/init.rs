//! A tenant's first process: process 1 of its namespaces.
//!
//! It makes the tenant's world once, then forks what it is asked for and reaps whatever ends. It has one thread and
//! reads one socket; when that ends, because the service let go of it or died, it leaves, and the kernel ends every
//! other process of the tenant with it.

mod broker;
mod etc;
mod filter;
mod job;
mod root;
mod self_test;
mod system;
mod terminal;

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, kill_process, set_dumpable_behavior, wait};

use super::egress;
use super::wire::{self, FileFault, Order, Report, Status};
use crate::sys::kernel;
use crate::sys::spawn::SingleThread;

/// Runs as a tenant's first process. The descriptor of its orders is number 3.
pub fn init_main() -> ExitCode {
    let Some(socket) = kernel::inherited(crate::sys::child::SOCKET) else {
        return ExitCode::from(USAGE);
    };
    // Commands run as another user in most tenants, but as the same one where only one user is mapped; then this is
    // what keeps them from reading this process's memory and descriptors.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::FAILURE;
    }
    let _ = rustix::thread::set_name(c"init");
    // The service's keys come with its session; a kernel without keys has none to leave behind.
    let _ = kernel::leave_keys_behind();
    // What is made here is the tenant's to read, however private the service's own files are.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let Some(single) = SingleThread::prove() else { return ExitCode::FAILURE };
    let mut buffer = vec![0; wire::PACKET];
    let Ok(Some((Order::Setup(setup), descriptors))) = wire::receive(socket.as_fd(), &mut buffer) else {
        return ExitCode::from(USAGE);
    };
    let built = root::build(&setup, descriptors).and_then(|()| {
        let listeners = if setup.egress { egress::listen() } else { Ok(Vec::new()) };
        let listeners = listeners.map_err(Fault::at("listen for the proxy"))?;
        Ok((listeners, job::confine(&setup)?))
    });
    let (listeners, filters) = match built {
        Ok(built) => built,
        Err(fault) => {
            let refused = Report::Refused { step: fault.step, errno: fault.errno };
            let _ = wire::send(socket.as_fd(), &refused, &[]);
            return ExitCode::FAILURE;
        }
    };
    let Ok(children) = kernel::watch_children() else { return ExitCode::FAILURE };
    let lent: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    if wire::send(socket.as_fd(), &Report::Ready, &lent).is_err() {
        return ExitCode::FAILURE;
    }
    // They are the service's alone now: no command could take one over.
    drop(listeners);
    let mut init = Init {
        socket,
        single,
        filters,
        nested: setup.nested,
        environment: job::environment(&setup),
        expendable: job::expendable(),
        processes: setup.limits.processes,
        open_files: setup.limits.open_files,
        children: HashMap::new(),
    };
    init.serve(&children, &mut buffer);
    ExitCode::SUCCESS
}

/// A step of making the tenant's world that the kernel refused.
#[derive(Debug)]
struct Fault {
    step: String,
    errno: i32,
}

impl Fault {
    fn at(step: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let step = step.into();
        move |fault| Self { step, errno: fault.raw_os_error().unwrap_or(0) }
    }
}

struct Init {
    socket: OwnedFd,
    single: SingleThread,
    /// What each command loads; absent in a test's tenant without locks.
    filters: Option<Vec<filter::Program>>,
    nested: bool,
    environment: Vec<CString>,
    /// Commands' score when the kernel looks for whom to end for want of memory.
    expendable: String,
    /// How many processes commands may have.
    processes: u64,
    /// How many files each of them may have open.
    open_files: u64,
    /// What was forked for an order and has not been reaped.
    children: HashMap<i32, Child>,
}

#[derive(Clone, Copy)]
enum Child {
    Command(u64),
    /// The first process of a command's own pid namespace.
    Nested(u64),
    Broker(u64),
}

impl Init {
    fn serve(&mut self, children: &OwnedFd, buffer: &mut [u8]) {
        loop {
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let [orders, ended] = waiting.map(|descriptor| !descriptor.revents().is_empty());
            if ended {
                // The descriptor only says that there is something to reap; how much, the reaping finds out.
                let _ = rustix::io::read(children, &mut [0u8; 1024]);
                self.reap();
            }
            if orders {
                match wire::receive::<Order>(self.socket.as_fd(), buffer) {
                    Ok(Some((order, descriptors))) => self.obey(order, descriptors),
                    Ok(None) | Err(_) => return,
                }
            }
        }
    }

    fn obey(&mut self, order: Order, descriptors: Vec<OwnedFd>) {
        match order {
            // A second world is never asked for.
            Order::Setup(_) => {}
            Order::Start(start) => {
                let id = start.id;
                match job::start(self, start, descriptors) {
                    Ok(pid) => {
                        let child = if self.nested { Child::Nested(id) } else { Child::Command(id) };
                        self.children.insert(pid.as_raw_nonzero().get(), child);
                    }
                    Err(fault) => self.tell(&Report::NotStarted {
                        id,
                        step: wire::Step::Fork,
                        errno: fault.raw_os_error().unwrap_or(0),
                    }),
                }
            }
            Order::Kill { id } => self.kill(id),
            Order::SelfTest(test) => self.test(&test),
            Order::Read { id, cwd, path } => {
                self.broker(id, move |socket| broker::read(socket, id, cwd.as_deref(), &path))
            }
            Order::Write { id, cwd, path, full } => {
                let Some(content) = descriptors.into_iter().next() else { return };
                self.broker(id, move |socket| broker::write(socket, id, cwd.as_deref(), &path, full, &content));
            }
            Order::Append { id, cwd, path, full } => {
                let Some(content) = descriptors.into_iter().next() else { return };
                self.broker(id, move |socket| broker::append(socket, id, cwd.as_deref(), &path, full, &content));
            }
            Order::Parents { id, cwd, path } => {
                self.broker(id, move |socket| broker::parents(socket, id, cwd.as_deref(), &path));
            }
        }
    }

    fn test(&mut self, test: &wire::SelfTest) {
        match self.single.fork(0, None) {
            Ok(Some(born)) => {
                self.children.insert(born.pid.as_raw_nonzero().get(), Child::Broker(test.id));
            }
            Ok(None) => self_test::run(self, test),
            Err(fault) => {
                let faults = vec![format!("no process can be made: {fault}")];
                self.tell(&Report::SelfTested { id: test.id, faults });
            }
        }
    }

    /// Forks for a file: the fork is the guest, so the kernel judges every path as it would the guest's own.
    fn broker(&mut self, id: u64, work: impl FnOnce(&OwnedFd)) {
        match self.single.fork(0, None) {
            Ok(Some(born)) => {
                self.children.insert(born.pid.as_raw_nonzero().get(), Child::Broker(id));
            }
            Ok(None) => {
                match job::become_guest(true) {
                    Ok(()) => work(&self.socket),
                    Err(fault) => {
                        let fault = FileFault::Errno(fault.raw_os_error().unwrap_or(0));
                        self.tell(&Report::FileFault { id, fault });
                    }
                }
                kernel::exit_now(0);
            }
            Err(fault) => {
                let fault = FileFault::Errno(fault.raw_os_error().unwrap_or(0));
                self.tell(&Report::FileFault { id, fault });
            }
        }
    }

    fn kill(&mut self, id: u64) {
        let pid = self.children.iter().find_map(|(pid, child)| match child {
            Child::Nested(child) | Child::Broker(child) if *child == id => Pid::from_raw(*pid),
            Child::Nested(_) | Child::Command(_) | Child::Broker(_) => None,
        });
        match pid {
            // Not reaped yet, so the number is still this child's.
            Some(pid) => drop(kill_process(pid, Signal::KILL)),
            None => self.tell(&Report::Gone { id }),
        }
    }

    fn reap(&mut self) {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::from_bits_retain(ALL_CHILDREN);
        while let Ok(Some((pid, status))) = wait(options) {
            if status.stopped() {
                // A command may stop itself. What works for a file tool is stopped by nobody but a command, and whoever
                // waits for its answer is better told that there will be none.
                if let Some(Child::Broker(_)) = self.children.get(&pid.as_raw_nonzero().get()) {
                    let _ = kill_process(pid, Signal::KILL);
                }
                continue;
            }
            let status = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Status::Code(code),
                (None, Some(signal)) => Status::Signal(signal),
                (None, None) => continue,
            };
            match self.children.remove(&pid.as_raw_nonzero().get()) {
                Some(Child::Command(id)) => self.tell(&Report::Ended { id, status, last: false }),
                Some(Child::Nested(id)) => {
                    // Its shell's end was told by itself, unless it was killed; then this is all there is to tell.
                    self.tell(&Report::Ended { id, status, last: false });
                    self.tell(&Report::Gone { id });
                }
                Some(Child::Broker(id)) if status != Status::Code(0) => {
                    self.tell(&Report::FileFault { id, fault: FileFault::Lost });
                }
                Some(Child::Broker(_)) | None => {}
            }
        }
    }

    fn tell(&self, report: &Report) {
        // A service that cannot be told is gone, and the next read of the socket says so.
        let _ = wire::send(self.socket.as_fd(), report, &[]);
    }
}

/// `__WALL`: also children whose end sends another signal.
const ALL_CHILDREN: u32 = 0x4000_0000;

/// The program was not started by a service.
const USAGE: u8 = 64;
