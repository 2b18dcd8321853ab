//! Opening, replacing and appending to files as the tenant's own user, inside the tenant's world.
//!
//! Each call runs in a fork that is the guest, so a link leads where it would lead the guest's own shell, and a race
//! that the guest wins can only win what the guest has anyway. Links of `/proc` that jump elsewhere are refused.

mod draft;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags, fchmod, fchown, fstat, fsync, linkat,
    mkdirat, open, openat, openat2, readlinkat, renameat, statat, statx, unlinkat,
};
use rustix::io::Errno;

use crate::backend::linux::wire::{self, FileFault, HOME, Kind, Report, WORKSPACE};

/// Opens a regular file for reading and hands its descriptor over.
pub(super) fn read(socket: &OwnedFd, id: u64, cwd: Option<&str>, path: &str) {
    let opened = base(cwd).and_then(|base| {
        // Named first and opened only when it is known to be a plain file: opening a device or a pipe can do things.
        let named = resolve(&base, path, OFlags::PATH)?;
        regular(&named)?;
        reopen(&named)
    });
    let _ = match opened {
        Ok(file) => wire::send(socket.as_fd(), &Report::Opened { id }, &[file.as_fd()]),
        Err(fault) => wire::send(socket.as_fd(), &Report::FileFault { id, fault }, &[]),
    };
}

/// Replaces a regular file, or makes it.
pub(super) fn write(socket: &OwnedFd, id: u64, cwd: Option<&str>, path: &str, full: bool, content: &OwnedFd) {
    let found = base(cwd).and_then(|base| Target::find(base, path, OFlags::empty()));
    tell(socket, id, found.and_then(|target| target.with_room(full)).and_then(|target| target.replace(content)));
}

/// Adds to a regular file, or makes it.
pub(super) fn append(socket: &OwnedFd, id: u64, cwd: Option<&str>, path: &str, full: bool, content: &OwnedFd) {
    let found = base(cwd).and_then(|base| Target::find(base, path, OFlags::APPEND));
    tell(socket, id, found.and_then(|target| target.with_room(full)).and_then(|target| target.append(content)));
}

/// Makes the folders above a file.
pub(super) fn parents(socket: &OwnedFd, id: u64, cwd: Option<&str>, path: &str) {
    let report = match base(cwd).and_then(|base| make_folders(base, path)) {
        Ok(()) => Report::Made { id },
        Err(fault) => Report::FileFault { id, fault },
    };
    let _ = wire::send(socket.as_fd(), &report, &[]);
}

/// What a write came to.
struct Landed {
    bytes: u64,
    created: bool,
    size: u64,
}

fn tell(socket: &OwnedFd, id: u64, landed: Result<Landed, FileFault>) {
    let report = match landed {
        Ok(Landed { bytes, created, size }) => Report::Written { id, bytes, created, size },
        Err(fault) => Report::FileFault { id, fault },
    };
    let _ = wire::send(socket.as_fd(), &report, &[]);
}

impl From<Errno> for FileFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ISDIR => Self::Directory,
            other => Self::Errno(other.raw_os_error()),
        }
    }
}

/// Where a relative path starts, and where a command does. Never through a link of `/proc` to a descriptor: what the first
/// process and its forks hold open may be the host's.
pub(super) fn base(cwd: Option<&str>) -> Result<OwnedFd, FileFault> {
    match cwd {
        None => resolve(CWD, HOME, FOLDER),
        Some(cwd) if cwd.starts_with('/') => resolve(CWD, cwd, FOLDER),
        Some(cwd) => resolve(resolve(CWD, HOME, FOLDER)?, cwd, FOLDER),
    }
}

/// As `mkdir -p` would: what is there, a link to a folder included, is gone through.
fn make_folders(base: OwnedFd, path: &str) -> Result<(), FileFault> {
    let Some((folders, _)) = path.rsplit_once('/') else { return Ok(()) };
    let mut at = if path.starts_with('/') { resolve(CWD, "/", FOLDER)? } else { base };
    for name in folders.split('/').filter(|name| !matches!(*name, "" | ".")) {
        at = match resolve(&at, name, FOLDER) {
            Err(FileFault::Errno(libc::ENOENT)) => match mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => resolve(&at, name, FOLDER)?,
                Err(fault) => return Err(fault.into()),
            },
            other => other?,
        };
    }
    Ok(())
}

fn resolve(base: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, FileFault> {
    Ok(openat2(base, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
}

fn reopen(named: &OwnedFd) -> Result<OwnedFd, FileFault> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", named.as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

fn regular(file: &OwnedFd) -> Result<Stat, FileFault> {
    let found = fstat(file)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(found),
        FileType::Directory => Err(FileFault::Directory),
        FileType::Fifo => Err(FileFault::Kind(Kind::Pipe)),
        FileType::Socket => Err(FileFault::Kind(Kind::Socket)),
        FileType::CharacterDevice => Err(FileFault::Kind(Kind::CharacterDevice)),
        FileType::BlockDevice => Err(FileFault::Kind(Kind::BlockDevice)),
        FileType::Symlink | FileType::Unknown => Err(FileFault::Kind(Kind::Other)),
    }
}

/// Where a written file is to stand: the folder, the name in it, and what stands there now.
struct Target {
    folder: OwnedFd,
    name: String,
    found: Option<Stat>,
}

impl Target {
    /// Follows links at the end of the path by hand, since the file that is replaced is the one a shell would write.
    /// `how` is what else a shell would open an existing file with.
    fn find(mut base: OwnedFd, path: &str, how: OFlags) -> Result<Self, FileFault> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let (folder, name) = match path.rsplit_once('/') {
                Some(("", name)) => ("/", name),
                Some((folder, name)) => (folder, name),
                None => (".", path.as_str()),
            };
            if matches!(name, "" | "." | "..") {
                // Only a folder can be named so; whether it is there is said too.
                resolve(&base, if path.is_empty() { "." } else { &path }, OFlags::PATH)?;
                return Err(FileFault::Directory);
            }
            let folder = resolve(&base, folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
            let found = match openat(&folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT) => return Ok(Self { name: name.to_owned(), folder, found: None }),
                Err(fault) => return Err(fault.into()),
            };
            if FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Symlink {
                let target = readlinkat(&found, "", Vec::new())?;
                path = target.into_string().map_err(|_not_text| FileFault::from(Errno::ILSEQ))?;
                base = folder;
                continue;
            }
            let found = regular(&found)?;
            // Replacing needs no right to the file itself, but a shell's `>` would need it, and the pile relies on it.
            openat(
                &folder,
                name,
                how | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            return Ok(Self { name: name.to_owned(), folder, found: Some(found) });
        }
        Err(Errno::LOOP.into())
    }

    /// Refuses a place that is `full`: only what lies in home and workspace counts for a tenant's bound.
    fn with_room(self, full: bool) -> Result<Self, FileFault> {
        let counts = |place: &str| -> Result<bool, FileFault> {
            Ok(mount(&self.folder)? == mount(&resolve(CWD, place, FOLDER)?)?)
        };
        if full && (counts(HOME)? || counts(WORKSPACE)?) { Err(Errno::NOSPC.into()) } else { Ok(self) }
    }

    /// The old content stays until the new one is on disk.
    fn replace(&self, content: &OwnedFd) -> Result<Landed, FileFault> {
        let draft = draft::name(&self.folder);
        let mode = Mode::from_raw_mode(0o600);
        // A file without a name needs no cleaning up if this process is killed; not every file system has them.
        let unnamed = openat(&self.folder, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode);
        let (file, named) = match unnamed {
            Ok(file) => (file, false),
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                (openat(&self.folder, &draft, flags, mode)?, true)
            }
            Err(fault) => return Err(fault.into()),
        };
        let result = self.fill(&file, content, &draft, named);
        if result.is_err() {
            let _ = unlinkat(&self.folder, &draft, AtFlags::empty());
        }
        let bytes = result?;
        Ok(Landed { bytes, created: self.found.is_none(), size: bytes })
    }

    fn fill(&self, file: &OwnedFd, content: &OwnedFd, draft: &str, named: bool) -> Result<u64, FileFault> {
        use std::os::fd::AsRawFd;
        let size = u64::try_from(fstat(content)?.st_size).unwrap_or(0);
        let mut offset = 0;
        while offset < size {
            let rest = usize::try_from(size - offset).unwrap_or(usize::MAX);
            if rustix::fs::sendfile(file, content, Some(&mut offset), rest)? == 0 {
                return Err(Errno::IO.into());
            }
        }
        self.dress(file)?;
        fsync(file)?;
        if !named {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, path, &self.folder, draft, AtFlags::SYMLINK_FOLLOW)?;
        }
        renameat(&self.folder, draft, &self.folder, &self.name)?;
        fsync(&self.folder)?;
        let written = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(u64::try_from(written.st_size).unwrap_or(size))
    }

    /// Gives a new file the owner and mode of the one that it replaces. One that cannot have them does not replace it.
    fn dress(&self, file: &OwnedFd) -> Result<(), FileFault> {
        let Some(old) = &self.found else { return Ok(fchmod(file, Mode::from_raw_mode(0o644))?) };
        let new = fstat(file)?;
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
            let (user, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
            fchown(file, Some(user), Some(group))?;
        }
        Ok(fchmod(file, Mode::from_raw_mode(old.st_mode & 0o7777))?)
    }

    /// The kernel puts each write behind what is there at that moment, so that those who append at once mix nothing.
    fn append(&self, content: &OwnedFd) -> Result<Landed, FileFault> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (file, created) = match openat(&self.folder, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                let new = flags | OFlags::CREATE | OFlags::EXCL;
                (openat(&self.folder, &self.name, new, Mode::from_raw_mode(0o644))?, true)
            }
            opened => (opened?, false),
        };
        regular(&file)?;
        let bytes = whole(content)?;
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(&file, rest) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(fault) if written == 0 => {
                    if created {
                        let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
                    }
                    return Err(fault.into());
                }
                // What is in the file stays there: others may have appended behind it.
                Err(_) => break,
            }
        }
        fsync(&file)?;
        if created {
            fsync(&self.folder)?;
        }
        let size = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
        Ok(Landed { bytes: u64::try_from(written).unwrap_or(u64::MAX), created, size })
    }
}

/// By which mount a folder is reached. Not by which device: piles lie on the same one as home.
fn mount(folder: &OwnedFd) -> Result<u64, FileFault> {
    Ok(statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// What a file without a name holds.
fn whole(content: &OwnedFd) -> Result<Vec<u8>, FileFault> {
    let read = content.try_clone().map(File::from).and_then(|file| {
        let size = file.metadata()?.len();
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    });
    read.map_err(|fault| FileFault::Errno(fault.raw_os_error().unwrap_or(libc::EIO)))
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// As many as the kernel itself follows.
const MOST_LINKS: u32 = 40;
