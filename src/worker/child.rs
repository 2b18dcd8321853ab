//! This program started again, as one of its own children.
//!
//! A child gets its listener as descriptor 0, the control socket as descriptor 1, and nothing else: no environment, no
//! argument but its role, no other descriptor. On Linux it is started from a descriptor of the running file that was
//! opened once, so an upgrade on disk never mixes two builds; elsewhere from the file's path.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::handoff::{self, Receiver, Sender};
use crate::sys::Itself;

/// The running file.
#[derive(Debug)]
pub struct Program(Itself);

/// Who a child runs as; as its parent when absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// A child that was started, and the control socket to it.
#[derive(Debug)]
pub struct Started {
    pub process: Process,
    pub sender: Sender,
    pub receiver: Receiver,
}

/// A running child. Dropping it kills the child.
#[derive(Debug)]
pub struct Process(Child);

/// What a child finds as its descriptors 0 and 1.
#[derive(Debug)]
pub struct Inherited {
    pub listener: OwnedFd,
    pub control: OwnedFd,
}

#[derive(Debug, thiserror::Error)]
#[error("start the child {role}{}", user.map(|user| format!(" as uid {}", user.uid)).unwrap_or_default())]
pub struct StartError {
    role: &'static str,
    user: Option<User>,
    #[source]
    source: io::Error,
}

impl Program {
    /// Opens the file this process runs from.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open() -> io::Result<Self> {
        Ok(Self(Itself::open()?))
    }

    /// Starts a child in a role, with its listener.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(
        &self,
        role: &'static str,
        listener: BorrowedFd<'_>,
        user: Option<User>,
    ) -> Result<Started, StartError> {
        self.spawn(role, listener, user).map_err(|source| StartError { role, user, source })
    }

    fn spawn(&self, role: &'static str, listener: BorrowedFd<'_>, user: Option<User>) -> io::Result<Started> {
        let (ours, theirs) = handoff::pair()?;
        let mut command = self.command(role);
        // A group of its own: Ctrl-C reaches the supervisor alone, which then stops its children in order.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::from(listener.try_clone_to_owned()?)).stdout(Stdio::from(theirs));
        if let Some(User { uid, gid }) = user {
            // The standard library also clears the supplementary groups when it leaves root.
            command.gid(gid).uid(uid);
        }
        let child = command.spawn()?;
        let (sender, receiver) = handoff::open(ours)?;
        Ok(Started { process: Process(child), sender, receiver })
    }

    #[expect(clippy::disallowed_methods, reason = "this is the room that starts the service's children")]
    fn command(&self, role: &'static str) -> Command {
        let mut command = Command::new(self.0.path());
        command.arg0("playground").arg(role).env_clear().current_dir("/");
        command
    }
}

impl Process {
    /// Waits for the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the system cannot say.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Ends the child at once; [`Process::ended`] tells when it is gone.
    pub fn kill(&mut self) {
        // An error means that it has ended already.
        if let Some(pid) = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// The process id while the child has not been waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }
}

impl Inherited {
    /// Takes descriptors 0 and 1 from where they were handed in, and leaves harmless ones there.
    ///
    /// # Errors
    /// When this process was not started by [`Program::start`].
    pub fn take() -> io::Result<Self> {
        let listener = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), LOWEST)?;
        let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), LOWEST)?;
        // A started child has a socket there; a person who typed the hidden verb has not.
        rustix::net::getsockname(&control)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        // Whatever prints by mistake lands in the log and not in the control socket.
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { listener, control })
    }
}

/// Above the standard descriptors.
const LOWEST: i32 = 3;
