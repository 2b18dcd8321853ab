//! The device that shows an image to the kernel's file systems.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, makedev, mknodat, open, unlinkat};

use crate::sys::disk::{free_loop_device, show_on_loop_device};

/// Where nodes of devices are found, and where one can be made for a moment that is not found there.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::linux) struct Nodes<'a> {
    pub(in crate::backend::linux) host: &'a Path,
    pub(in crate::backend::linux) spare: &'a Path,
}

/// A device that shows an image, for as long as this or a mount of it is there.
pub(super) struct LoopDevice {
    /// What a mount calls it.
    pub(super) name: String,
    _device: OwnedFd,
}

/// Shows a file on a device that nobody else uses.
pub(super) fn attach(file: BorrowedFd<'_>, nodes: Nodes<'_>) -> io::Result<LoopDevice> {
    let control = control(nodes)?;
    for _ in 0..TRIALS {
        let number = free_loop_device(control.as_fd())?;
        let wanted = Node { kind: FileType::BlockDevice, major: LOOP_MAJOR, minor: number };
        let named = nodes.host.join(format!("loop{number}"));
        let (device, name) = match open_if(&named, wanted) {
            Some(device) => (device, named.to_string_lossy().into_owned()),
            None => {
                let device = make(nodes.spare, wanted)?;
                // The node is gone already; this path leads to the device all the same.
                let name = format!("/proc/self/fd/{}", device.as_raw_fd());
                (device, name)
            }
        };
        match show_on_loop_device(device.as_fd(), file) {
            Ok(()) => return Ok(LoopDevice { name, _device: device }),
            // Somebody else took it in between.
            Err(fault) if fault.raw_os_error() == Some(libc::EBUSY) => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "others take every loop device away"))
}

/// Where free devices are asked for.
pub(super) fn control(nodes: Nodes<'_>) -> io::Result<OwnedFd> {
    match open_if(&nodes.host.join("loop-control"), CONTROL) {
        Some(control) => Ok(control),
        None => make(nodes.spare, CONTROL),
    }
}

/// The host's own node, if it has one and it is what its name says.
fn open_if(path: &Path, wanted: Node) -> Option<OwnedFd> {
    let device = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let found = fstat(&device).ok()?;
    let is_it =
        FileType::from_raw_mode(found.st_mode) == wanted.kind && found.st_rdev == makedev(wanted.major, wanted.minor);
    is_it.then_some(device)
}

#[derive(Clone, Copy)]
struct Node {
    kind: FileType,
    major: u32,
    minor: u32,
}

/// Opens a device by a node that is made for it and removed at once, where the host has none.
fn make(folder: &Path, node: Node) -> io::Result<OwnedFd> {
    let path = folder.join(format!(".node-{}-{}-{:?}", node.major, node.minor, std::thread::current().id()));
    let device = makedev(node.major, node.minor);
    match unlinkat(CWD, &path, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(fault) => return Err(fault.into()),
    }
    mknodat(CWD, &path, node.kind, Mode::from_raw_mode(0o600), device)?;
    let opened = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    unlinkat(CWD, &path, AtFlags::empty())?;
    opened.map_err(|fault| {
        let why = format!("/dev has no node for it, and one in {} cannot be used: {fault}", folder.display());
        io::Error::new(io::Error::from(fault).kind(), why)
    })
}

const CONTROL: Node = Node { kind: FileType::CharacterDevice, major: 10, minor: 237 };

const LOOP_MAJOR: u32 = 7;

/// A free device is asked for and taken in two steps; this many times in a row others may be faster.
const TRIALS: u32 = 64;
