//! A tenant's disk: a file of the host that holds a file system, so that its bounds are the kernel's.
//!
//! ```text
//! disk.img ──flock──> loop device ──> ext4, attached to no place of the host ──> home, workspace
//! ```
//!
//! The lock is on the very description of the file that the loop device keeps, and the device lets go of it when the last
//! mount is gone. So whoever gets the lock knows that nobody else has the disk, whichever process died in which moment;
//! and nothing that a killed service leaves has to be looked for.

mod loop_device;
mod program;
mod superblock;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, Uid, chownat, flock, fstatvfs, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    open_tree,
};

use self::superblock::Superblock;
use crate::backend::{Share, Usage};
use crate::sys::disk::give_back_free_blocks;

pub(super) use self::loop_device::Nodes;
pub(super) use self::program::format;

/// A disk that is mounted, though nowhere.
#[derive(Debug)]
pub(super) struct Disk {
    image: PathBuf,
    mount: OwnedFd,
}

/// Whether this host can keep tenants' files on disks of their own.
pub(super) fn is_possible(nodes: Nodes<'_>) -> bool {
    program::are_there() && loop_device::control(nodes).is_ok() && fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC).is_ok()
}

/// What a disk that nobody has mounted holds; of one that is mounted, what it held some moments ago.
pub(super) fn resting(image: &Path) -> io::Result<Usage> {
    Ok(Superblock::read(&File::open(image)?)?.usage())
}

impl Disk {
    /// Mounts an image, enlarged to `bytes` if it is smaller. Waits for a predecessor to let go of it. Blocks.
    pub(super) fn mount(image: &Path, bytes: u64, nodes: Nodes<'_>) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).open(image)?;
        lock(&file)?;
        if file.metadata()?.len() < bytes {
            file.set_len(bytes)?;
        }
        let found = Superblock::read(&file)?;
        if found.blocks < file.metadata()?.len() / found.block_size {
            // Mounted once, so that what a killed predecessor began is finished first.
            drop(Self::mount_as_it_is(image, &file, nodes)?);
            drop(file);
            file = OpenOptions::new().read(true).write(true).open(image)?;
            lock(&file)?;
            program::enlarge(image, &file)?;
        }
        Self::mount_as_it_is(image, &file, nodes)
    }

    fn mount_as_it_is(image: &Path, file: &File, nodes: Nodes<'_>) -> io::Result<Self> {
        let device = loop_device::attach(file.as_fd(), nodes)?;
        let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "source", &device.name)?;
        // Of a disk that is broken nothing more is to be lost.
        fsconfig_set_string(&context, "errors", "remount-ro")?;
        fsconfig_create(&context)?;
        let rights = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, rights)?;
        Ok(Self { image: image.to_owned(), mount })
    }

    /// Makes the folders that are not there, as `owner`'s.
    pub(super) fn furnish(&self, owner: u32) -> io::Result<()> {
        for name in FOLDERS {
            match mkdirat(&self.mount, name, Mode::from_raw_mode(0o700)) {
                Ok(()) => {
                    let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
                    chownat(&self.mount, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
                }
                Err(Errno::EXIST) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(())
    }

    /// A mount of one folder alone, which Linux 6.15 and newer can take of a mount that is nowhere; `None` on others.
    pub(super) fn part(&self, folder: &str) -> io::Result<Option<OwnedFd>> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        match open_tree(&self.mount, folder, flags) {
            Ok(part) => Ok(Some(part)),
            Err(Errno::INVAL) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The mount of the whole disk.
    pub(super) fn whole(&self) -> &OwnedFd {
        &self.mount
    }

    pub(super) fn usage(&self) -> io::Result<Usage> {
        let found = fstatvfs(&self.mount)?;
        let bytes = |blocks: u64| blocks * found.f_frsize;
        Ok(Usage {
            disk: Share {
                used: Some(bytes(found.f_blocks.saturating_sub(found.f_bfree))),
                bound: Some(bytes(found.f_blocks)),
            },
            inodes: Share { used: Some(found.f_files.saturating_sub(found.f_ffree)), bound: Some(found.f_files) },
            pile: 0,
        })
    }

    /// Lets go of the disk and waits until the kernel has, which writes out what is still in memory. Blocks.
    pub(super) fn close(self) -> io::Result<()> {
        if let Err(fault) = self.give_back() {
            tracing::debug!(image = %self.image.display(), %fault, "free room is not given back to the host");
        }
        let image = self.image.clone();
        drop(self);
        lock(&File::open(image)?)
    }

    /// Gives the host back what deleted files took, if that is worth the while.
    fn give_back(&self) -> io::Result<()> {
        let held = self.image.metadata()?.blocks() * 512;
        let used = self.usage()?.disk.used.unwrap_or_default();
        if held < used.saturating_add(WORTH_GIVING_BACK) {
            return Ok(());
        }
        give_back_free_blocks(self.open(".")?.as_fd())
    }

    fn open(&self, name: &str) -> io::Result<OwnedFd> {
        Ok(openat(&self.mount, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// Waits for the lock of an image.
fn lock(file: &File) -> io::Result<()> {
    let attempt = || flock(file, FlockOperation::NonBlockingLockExclusive);
    kit::patience::until(LETTING_GO, attempt, |fault| *fault == Errno::WOULDBLOCK).map_err(|fault| match fault {
        Errno::WOULDBLOCK => io::Error::new(io::ErrorKind::TimedOut, "the disk is still in use"),
        fault => fault.into(),
    })
}

/// The folders of a tenant that lie on its disk.
pub(super) const HOME_PART: &str = "home";
pub(super) const WORKSPACE_PART: &str = "workspace";
const FOLDERS: [&str; 2] = [HOME_PART, WORKSPACE_PART];

/// Some gigabytes that are only in memory have to be written out first, to a slow disk at worst.
const LETTING_GO: Duration = Duration::from_secs(60);

/// Less than this, beside the file system's own tables and journal, would be given back at every stop for nothing.
const WORTH_GIVING_BACK: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Disk, Nodes, format, is_possible, resting};

    #[test]
    fn who_comes_second_waits_until_the_first_has_let_go() {
        let place = tempfile::tempdir().unwrap();
        let nodes = Nodes { host: Path::new("/dev"), spare: place.path() };
        if !is_possible(nodes) {
            // Only root has disks; that it does have them here, the tests of the whole backend say.
            return;
        }
        let image = place.path().join("disk.img");
        format(&image, 16 << 20, 1000).unwrap();
        let first = Disk::mount(&image, 0, nodes).unwrap();
        first.furnish(12_345).unwrap();
        let used = first.usage().unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Disk::mount(&image, 0, nodes).unwrap());
            // It cannot have come through, as long as this one has the lock; nothing could be waited for instead.
            assert!(!second.is_finished());
            assert_eq!(shown(place.path()), 1);
            drop(first);
            let second = second.join().unwrap();
            assert_eq!(shown(place.path()), 1);
            assert_eq!(second.usage().unwrap(), used);
            second.close().unwrap();
        });
        assert_eq!(shown(place.path()), 0);
        assert_eq!(resting(&image).unwrap(), used, "a resting disk says what a mounted one did");
    }

    fn shown(below: &Path) -> usize {
        let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
        let files = devices.filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
        files.filter(|file| Path::new(file.trim()).starts_with(below)).count()
    }
}
