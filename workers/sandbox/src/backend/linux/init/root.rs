//! The tenant's file system: the host's programs, read-only, and folders of its own.
//!
//! Everything that comes from the host is opened as a detached copy of a mount first; then the new root is put together
//! and the old one let go, so no path of the host is left to find.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, statat, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change, move_mount,
    open_tree, unmount,
};

use super::Fault;
use super::etc::Etc;
use super::system::System;
use crate::backend::linux::wire::{SYSTEM, Setup, Source};
use crate::sys::kernel::{self, NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY};

/// Makes the world that `setup` describes and makes it this process's root.
pub(super) fn build(setup: &Setup, descriptors: Vec<OwnedFd>) -> Result<(), Fault> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(io::Error::from)
        .map_err(Fault::at("make the mounts private"))?;
    let mut descriptors = descriptors.into_iter();
    let mut folders = folders(setup, &mut descriptors)?;
    let (mut system, mut etc) = (None, Etc::default());
    for tree in supplies(setup, &mut descriptors)? {
        if tree.target == SYSTEM.trim_start_matches('/') {
            system = Some(System::Image(tree));
        } else {
            folders.push(tree);
        }
    }
    if system.is_none() {
        system = Some(System::of_host()?);
        etc = Etc::gather()?;
    }
    let devices = DEVICES
        .iter()
        .map(|name| Tree::open(&Path::new("/dev").join(name), &format!("dev/{name}"), NO_SUID | NO_EXEC, false))
        .collect::<Result<Vec<_>, _>>()?;

    let (new, stage) = stage()?;
    for folder in FOLDERS {
        directory(&new, folder)?;
    }
    for (target, link) in LINKS {
        symlink(&new, target, link)?;
    }
    etc.write(&new, &setup.host_name)?;
    for tree in &folders {
        // Else a folder of the image's that is read-only would be in the place of one that is to be made.
        directory(&new, &tree.target)?;
    }
    system.map_or(Ok(()), |system| system.place(&new, &stage))?;
    for folder in LATE_FOLDERS {
        directory(&new, folder)?;
    }
    for tree in etc.folders {
        tree.place(&new)?;
    }
    for tree in folders {
        tree.place(&new)?;
    }
    let temporary = format!("mode=1777,size={},nr_inodes={INODES}", setup.limits.temporary);
    at(&stage, "tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, &temporary)?;
    make_devices(&new, &stage, devices, &temporary)?;
    make_proc(&new, &stage)?;

    enter(&new)?;
    kernel::bring_loopback_up().map_err(Fault::at("bring the loopback interface up"))?;
    rustix::system::sethostname(setup.host_name.as_bytes())
        .map_err(io::Error::from)
        .map_err(Fault::at("set the host name"))
}

/// An empty root, mounted where the host has a folder to spare.
fn stage() -> Result<(OwnedFd, PathBuf), Fault> {
    let stage = spare()?;
    at(
        Path::new("/"),
        stage.to_str().unwrap_or("/tmp").trim_start_matches('/'),
        "tmpfs",
        MountFlags::NOSUID,
        "mode=0755,size=16m",
    )?;
    let new = openat(CWD, stage, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(io::Error::from)
        .map_err(Fault::at("open the new root"))?;
    Ok((new, stage.to_owned()))
}

/// A folder that every host has and no tenant needs.
fn spare() -> Result<&'static Path, Fault> {
    ["/tmp", "/var/tmp", "/mnt", "/run"]
        .iter()
        .map(Path::new)
        .find(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()))
        .ok_or_else(|| Fault { step: "find a folder to mount the new root on".to_owned(), errno: libc::ENOENT })
}

/// Makes the new root this process's only one, and read-only.
fn enter(new: &OwnedFd) -> Result<(), Fault> {
    let step = |result: rustix::io::Result<()>, what: &str| result.map_err(io::Error::from).map_err(Fault::at(what));
    step(rustix::process::fchdir(new), "enter the new root")?;
    // The old root lands on top of the new one and is then detached: no folder for it is needed.
    step(rustix::process::pivot_root(".", "."), "make the new root the root")?;
    step(unmount(".", UnmountFlags::DETACH), "let go of the host's root")?;
    step(rustix::process::chdir("/"), "enter the new root")?;
    for sealed in [c"/dev", c"/"] {
        let more = if sealed == c"/" { NO_DEVICES } else { NO_EXEC };
        kernel::restrict_mount(CWD, sealed, READ_ONLY | NO_SUID | more, false)
            .map_err(Fault::at(format!("seal {}", sealed.to_string_lossy())))?;
    }
    Ok(())
}

fn folders(setup: &Setup, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<Vec<Tree>, Fault> {
    let spare = spare()?;
    if setup.disk {
        // A folder of a mount can be taken only where the mount is in a place; the new root will cover it.
        let disk =
            descriptors.next().ok_or_else(|| Fault::at("take over the disk")(io::ErrorKind::InvalidData.into()))?;
        move_mount(&disk, "", CWD, spare, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(io::Error::from)
            .map_err(Fault::at("attach the disk"))?;
    }
    let mut trees = Vec::new();
    for bind in &setup.binds {
        let target = bind.target.trim_start_matches('/');
        match &bind.source {
            Source::Part(name) => trees.push(Tree::open(&spare.join(name), target, NO_SUID | NO_DEVICES, false)?),
            Source::Path(path) => trees.push(Tree::open(path, target, NO_SUID | NO_DEVICES, false)?),
            Source::Descriptor => {
                let mount = descriptors.next().ok_or_else(|| Fault {
                    step: format!("take over the mount of {}", bind.target),
                    errno: libc::EBADF,
                })?;
                trees.push(Tree { mount, target: target.to_owned(), is_folder: true });
            }
        }
    }
    Ok(trees)
}

/// What the operator gives; a mount that was handed over is read-only already.
fn supplies(setup: &Setup, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<Vec<Tree>, Fault> {
    let taken = setup.supplies.iter().map(|bind| {
        let target = bind.target.trim_start_matches('/');
        match &bind.source {
            Source::Path(path) => Tree::read_only(path, target),
            Source::Part(_) => {
                Err(Fault { step: format!("take {} from the tenant's disk", bind.target), errno: libc::EINVAL })
            }
            Source::Descriptor => match descriptors.next() {
                Some(mount) => Ok(Tree { mount, target: target.to_owned(), is_folder: true }),
                None => Err(Fault { step: format!("take over the mount of {}", bind.target), errno: libc::EBADF }),
            },
        }
    });
    taken.collect()
}

fn make_devices(new: &OwnedFd, stage: &Path, devices: Vec<Tree>, temporary: &str) -> Result<(), Fault> {
    at(stage, "dev", "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, "mode=0755,size=64k")?;
    for tree in devices {
        tree.place(new)?;
    }
    for folder in ["dev/pts", "dev/shm"] {
        directory(new, folder)?;
    }
    for (target, link) in DEVICE_LINKS {
        symlink(new, target, link)?;
    }
    let terminals = format!("newinstance,ptmxmode=0666,mode=620,max={TERMINALS}");
    at(stage, "dev/pts", "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, &terminals)?;
    at(stage, "dev/shm", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, temporary)
}

/// A `/proc` of the tenant's own processes, without what speaks of the host or to it.
fn make_proc(new: &OwnedFd, stage: &Path) -> Result<(), Fault> {
    at(stage, "proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, "")?;
    leave_some_to_others(stage);
    for name in READ_ONLY_PROC {
        let target = format!("proc/{name}");
        let path = stage.join(&target);
        if path.exists() {
            Tree::open(&path, &target, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, true)?.place(new)?;
        }
    }
    for name in HIDDEN_PROC {
        let target = format!("proc/{name}");
        let path = stage.join(&target);
        let Ok(found) = path.symlink_metadata() else { continue };
        if found.is_dir() {
            at(
                stage,
                &target,
                "tmpfs",
                MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY,
                "mode=0555,size=0k,nr_inodes=2",
            )?;
        } else {
            Tree::open(Path::new("/dev/null"), &target, NO_SUID | NO_EXEC, false)?.place(new)?;
        }
    }
    Ok(())
}

/// Holds this user namespace to a part of tables that the kernel keeps for the service's user, who made it. Otherwise one
/// tenant could leave the host's own programs and every other tenant without.
fn leave_some_to_others(stage: &Path) {
    let settings = stage.join("proc/sys");
    for (all, own) in SHARED_TABLES {
        let most: Option<u64> = fs::read_to_string(settings.join(all)).ok().and_then(|text| text.trim().parse().ok());
        if let Some(most) = most {
            // Older kernels have no such bound.
            let _ = fs::write(settings.join(own), (most / 8).max(1).to_string());
        }
    }
}

/// Gives a process that begins a pid namespace a `/proc` of it.
pub(super) fn renew_proc() -> Result<(), Fault> {
    let root = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(io::Error::from)
        .map_err(Fault::at("open the root"))?;
    make_proc(&root, Path::new("/"))
}

/// A detached copy of a mount, and where it is to go.
pub(super) struct Tree {
    mount: OwnedFd,
    target: String,
    is_folder: bool,
}

impl Tree {
    pub(super) fn read_only(path: &Path, target: &str) -> Result<Self, Fault> {
        Self::open(path, target, READ_ONLY | NO_SUID | NO_DEVICES, true)
    }

    fn open(path: &Path, target: &str, attributes: u64, recursive: bool) -> Result<Self, Fault> {
        let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        if recursive {
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        let at = || Fault::at(format!("take {} for /{target}", path.display()));
        let mount = open_tree(CWD, path, flags).map_err(io::Error::from).map_err(at())?;
        kernel::restrict_mount(mount.as_fd(), c"", attributes, recursive).map_err(at())?;
        let is_folder = path.is_dir();
        Ok(Self { mount, target: target.to_owned(), is_folder })
    }

    pub(super) fn place(self, new: &OwnedFd) -> Result<(), Fault> {
        if statat(new, &self.target, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_err() {
            if self.is_folder { directory(new, &self.target)? } else { file(new, &self.target, b"")? }
        }
        move_mount(&self.mount, "", new, &self.target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(io::Error::from)
            .map_err(Fault::at(format!("mount /{}", self.target)))
    }
}

/// Mounts a new file system below the stage.
fn at(stage: &Path, target: &str, kind: &str, flags: MountFlags, options: &str) -> Result<(), Fault> {
    let path = stage.join(target);
    let options = CString::new(options).ok();
    mount(kind, &path, kind, flags, options.as_deref())
        .map_err(io::Error::from)
        .map_err(Fault::at(format!("mount a new {kind} on /{target}")))
}

/// Makes a folder and those above it.
pub(super) fn directory(new: &OwnedFd, path: &str) -> Result<(), Fault> {
    for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
        let part = path.get(..end).unwrap_or(path);
        match mkdirat(new, part, Mode::from_raw_mode(0o755)) {
            Err(fault) if fault != rustix::io::Errno::EXIST => {
                return Err(Fault::at(format!("make the folder /{part}"))(fault.into()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Makes a file with its content, and the folders above it.
pub(super) fn file(new: &OwnedFd, path: &str, content: &[u8]) -> Result<(), Fault> {
    if let Some((folder, _)) = path.rsplit_once('/') {
        directory(new, folder)?;
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    openat(new, path, flags, Mode::from_raw_mode(0o644))
        .map_err(io::Error::from)
        .and_then(|file| File::from(file).write_all(content))
        .map_err(Fault::at(format!("write /{path}")))
}

pub(super) fn symlink(new: &OwnedFd, target: impl AsRef<Path>, link: &str) -> Result<(), Fault> {
    let bytes = CString::new(target.as_ref().as_os_str().as_bytes()).unwrap_or_default();
    symlinkat(&bytes, new, link).map_err(io::Error::from).map_err(Fault::at(format!("make the link /{link}")))
}

const FOLDERS: [&str; 8] = ["etc", "proc", "dev", "tmp", "run", "var", "home", "mnt"];

/// What an image may bring, and is wanted in any case.
const LATE_FOLDERS: [&str; 2] = ["var/lib", "var/log"];

const LINKS: [(&str, &str); 3] = [("../tmp", "var/tmp"), ("../run", "var/run"), ("../proc/self/mounts", "etc/mtab")];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("pts/ptmx", "dev/ptmx"),
    ("/proc/self/fd", "dev/fd"),
    ("/proc/self/fd/0", "dev/stdin"),
    ("/proc/self/fd/1", "dev/stdout"),
    ("/proc/self/fd/2", "dev/stderr"),
];

const READ_ONLY_PROC: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

const HIDDEN_PROC: [&str; 13] = [
    "kcore",
    // When which device was heard tells of keys that someone else strikes.
    "interrupts",
    "thermal_throttle",
    "keys",
    "key-users",
    "timer_list",
    "sched_debug",
    "latency_stats",
    "kpagecount",
    "kpageflags",
    "acpi",
    "scsi",
    "asound",
];

/// The host's bound, and that of one user namespace.
const SHARED_TABLES: [(&str, &str); 2] = [
    ("fs/inotify/max_user_instances", "user/max_inotify_instances"),
    ("fs/inotify/max_user_watches", "user/max_inotify_watches"),
];

/// Of the 3,072 that the kernel usually has for all tenants.
const TERMINALS: u32 = 64;

/// How many files each file system in memory may hold.
const INODES: u32 = 262_144;
