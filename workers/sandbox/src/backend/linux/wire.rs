//! What the service and a tenant's first process say to each other.
//!
//! One message is one packet of a `SOCK_SEQPACKET` pair: JSON, with descriptors beside it. Only the service and the
//! first process (with its not yet executed forks) hold an end; a command never does.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::backend::Terminal;

/// What the service asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// The first packet; its descriptors are the binds that name none as a path.
    Setup(Box<Setup>),
    /// With standard input if the caller feeds it, output, error (none of them where there is a terminal), the text if it is long, the cgroup if there is one.
    Start(Start),
    /// Ends a command that has a pid namespace of its own.
    Kill {
        id: u64,
    },
    Read {
        id: u64,
        cwd: Option<String>,
        path: String,
    },
    /// Tries what must not be possible.
    SelfTest(Box<SelfTest>),
    /// With the new content.
    Write {
        id: u64,
        cwd: Option<String>,
        path: String,
        /// Whether home and workspace have no room for it.
        full: bool,
    },
    /// With what is to be added.
    Append {
        id: u64,
        cwd: Option<String>,
        path: String,
        /// Whether home and workspace have no room for it.
        full: bool,
    },
    /// Makes the folders above a file.
    Parents {
        id: u64,
        cwd: Option<String>,
        path: String,
    },
}

/// What is tried from inside.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SelfTest {
    pub(super) id: u64,
    /// Empty files that can only be appended to.
    pub(super) twins: Vec<String>,
    /// Where the host listens, and no tenant may reach it.
    pub(super) listeners: Vec<SocketAddr>,
    /// A file of the host.
    pub(super) canary: PathBuf,
    /// A file that cannot be made.
    pub(super) system: String,
    /// What the disk has at most, where the kernel bounds it.
    pub(super) disk: Option<u64>,
    /// What a test wants to go wrong.
    #[cfg(feature = "test-door")]
    pub(super) broken: Option<Check>,
}

/// A part of the self-test that a test breaks.
#[cfg(feature = "test-door")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    Pile,
    Host,
    Canary,
    System,
    Capabilities,
    Disk,
}

/// How the tenant's world is to look.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) host_name: String,
    pub(super) binds: Vec<Bind>,
    /// Read-only folders of the operator's; their descriptors come after those of `binds`.
    pub(super) supplies: Vec<Bind>,
    /// Whether the packet's first descriptor is a mount of a whole disk.
    pub(super) disk: bool,
    pub(super) limits: Bounds,
    /// What commands find in their environment.
    pub(super) environment: Vec<(String, String)>,
    /// Whether [`Report::Ready`] is to bring the listeners of a proxy.
    pub(super) egress: bool,
    /// Whether each command gets a pid namespace of its own, since there is no cgroup for it.
    pub(super) nested: bool,
    /// A test's wish for a tenant that keeps every capability and has no filter.
    #[cfg(feature = "test-door")]
    pub(super) unconfined: bool,
}

/// A folder of the host that the tenant finds at `target`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Bind {
    pub(super) target: String,
    pub(super) source: Source,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Source {
    /// A folder of the disk.
    Part(String),
    /// The next descriptor of the packet, a mount that is attached nowhere.
    Descriptor,
    /// A path that the first process can reach by itself.
    Path(PathBuf),
}

/// What the kernel is told to hold each process to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub(super) processes: u64,
    pub(super) open_files: u64,
    pub(super) file_size: u64,
    /// Bytes of private memory a process, where no cgroup bounds the tenant.
    pub(super) memory_each: Option<u64>,
    /// Bytes of each of the two file systems in memory.
    pub(super) temporary: u64,
    /// Whether only a lower priority keeps the tenant from the service's processors.
    pub(super) yielding: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) id: u64,
    /// Absent when it is a descriptor.
    pub(super) command: Option<String>,
    pub(super) login: bool,
    pub(super) cwd: Option<String>,
    /// Whether standard input is a descriptor; otherwise it is the tenant's `/dev/null`.
    pub(super) stdin: bool,
    /// The terminal that all three streams are; then none of them is a descriptor.
    pub(super) terminal: Option<Terminal>,
    pub(super) cgroup: bool,
    /// Whether it may write nothing to files, since there are too many.
    pub(super) full: bool,
}

/// What the first process, or one of its forks, tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// With the listeners of the tenant's proxy if it has one.
    Ready,
    /// The world could not be made: what was being done, and the kernel's error number.
    Refused {
        step: String,
        errno: i32,
    },
    /// The command is about to be executed. With this side of its terminal, where it has one.
    Started {
        id: u64,
    },
    NotStarted {
        id: u64,
        step: Step,
        errno: i32,
    },
    /// The shell itself ended; `last` when the kernel said that nothing else of a command with a pid namespace is left.
    Ended {
        id: u64,
        status: Status,
        last: bool,
    },
    /// Nothing of the command is left; said only of one with a pid namespace of its own.
    Gone {
        id: u64,
    },
    /// With the open file.
    Opened {
        id: u64,
    },
    Written {
        id: u64,
        bytes: u64,
        created: bool,
        size: u64,
    },
    /// The folders are there.
    Made {
        id: u64,
    },
    FileFault {
        id: u64,
        fault: FileFault,
    },
    /// What is possible and must not be.
    SelfTested {
        id: u64,
        faults: Vec<String>,
    },
}

/// Where the start of a command stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    Fork,
    Directory,
    Become,
    Terminal,
    Execute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    Code(i32),
    Signal(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FileFault {
    Errno(i32),
    Directory,
    Kind(Kind),
    /// The process that did it was ended before it could say how far it came.
    Lost,
}

/// What a path names that is not a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Pipe,
    Socket,
    CharacterDevice,
    BlockDevice,
    Other,
}

/// Sends one message. Whoever holds the other end may be gone: that is an error, never a signal.
pub(super) fn send(socket: BorrowedFd<'_>, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let packet = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Receives one message; `None` at the end.
pub(super) fn receive<Message: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<(Message, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let packet = buffer.get(..received.bytes).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((serde_json::from_slice(packet)?, descriptors)))
}

/// Room for one packet; a longer command travels as a descriptor.
pub(super) const PACKET: usize = 160 << 10;

/// The longest command that travels in the packet. JSON may make six bytes of one.
pub(super) const LONGEST_INLINE: usize = 16 << 10;

/// The kernel's own bound on a path, the ending zero byte not counted.
pub(super) const LONGEST_PATH: usize = 4095;

/// How many processes the first process may have beyond what commands may: a tenant that has used up its own can still
/// be given a shell to clear up with.
pub(super) const HEAD_ROOM: u64 = 32;

const MOST_DESCRIPTORS: usize = 8;

/// The one user that a tenant's commands run as, and the group of the same number.
pub(super) const GUEST: u32 = 1000;
pub(super) const USER: &str = "agent";
pub(super) const HOME: &str = "/home/agent";
pub(super) const WORKSPACE: &str = "/workspace";
pub(super) const PILE_FOLDER: &str = "/pile";
pub(super) const SHARED_FOLDER: &str = "/shared";
pub(super) const PILE_FILE: &str = "/pile/self.pile";
pub(super) const PILE_KEY: &str = "/pile/self.key";
pub(super) const FACULTIES: &str = "/opt/faculties";

/// Where an image is attached while its parts are put in place; no tenant sees it.
pub(super) const SYSTEM: &str = "/.system";
