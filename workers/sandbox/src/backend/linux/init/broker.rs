//! Opening and replacing files as the tenant's own user, inside the tenant's world.
//!
//! Each call runs in a fork that is the guest, so a link leads where it would lead the guest's own shell, and a race
//! that the guest wins can only win what the guest has anyway. Links of `/proc` that jump elsewhere are refused.

mod draft;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, fsync, linkat, open, openat, openat2,
    readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::backend::linux::wire::{self, FileFault, HOME, Kind, Report};

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
pub(super) fn write(socket: &OwnedFd, id: u64, cwd: Option<&str>, path: &str, content: &OwnedFd) {
    let report = match base(cwd).and_then(|base| Target::find(base, path)).and_then(|target| target.replace(content)) {
        Ok((bytes, created)) => Report::Written { id, bytes, created },
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

/// Where a relative path starts.
fn base(cwd: Option<&str>) -> Result<OwnedFd, FileFault> {
    let folder = OFlags::PATH | OFlags::DIRECTORY;
    match cwd {
        None => resolve(CWD, HOME, folder),
        Some(cwd) if cwd.starts_with('/') => resolve(CWD, cwd, folder),
        Some(cwd) => resolve(resolve(CWD, HOME, folder)?, cwd, folder),
    }
}

fn resolve(base: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, FileFault> {
    Ok(openat2(base, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
}

fn reopen(named: &OwnedFd) -> Result<OwnedFd, FileFault> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", named.as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

fn regular(file: &OwnedFd) -> Result<rustix::fs::Stat, FileFault> {
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
    mode: Option<Mode>,
}

impl Target {
    /// Follows links at the end of the path by hand, since the file that is replaced is the one a shell would write.
    fn find(mut base: OwnedFd, path: &str) -> Result<Self, FileFault> {
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
                Err(Errno::NOENT) => return Ok(Self { name: name.to_owned(), folder, mode: None }),
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
                OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
            return Ok(Self { name: name.to_owned(), folder, mode: Some(mode) });
        }
        Err(Errno::LOOP.into())
    }

    /// The old content stays until the new one is on disk.
    fn replace(&self, content: &OwnedFd) -> Result<(u64, bool), FileFault> {
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
        Ok((result?, self.mode.is_none()))
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
        fchmod(file, self.mode.unwrap_or(Mode::from_raw_mode(0o644)))?;
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
}

/// As many as the kernel itself follows.
const MOST_LINKS: u32 = 40;
