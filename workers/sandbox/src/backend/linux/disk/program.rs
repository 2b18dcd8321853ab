//! The host's own programs that make a file system in an image, and enlarge it.
//!
//! They are looked for at known places and not in a path that somebody else may have written, and they get an empty
//! environment. Each holds the image's lock by its standard input for as long as it lives, also when its service is killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Makes an image with an empty file system in it, whole or not at all. Blocks.
pub(in crate::backend::linux) fn format(image: &Path, bytes: u64, inodes: u64) -> io::Result<()> {
    let draft = image.with_added_extension("new");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    super::lock(&file)?;
    file.set_len(bytes)?;
    // A small journal: what it takes counts as the tenant's, and nobody waits for a single tenant's long writes.
    let journal = (bytes >> 20).div_ceil(JOURNAL_PART).clamp(LEAST_JOURNAL, MOST_JOURNAL);
    let (inodes, journal) = (inodes.to_string(), format!("size={journal}"));
    let lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    let arguments = ["-q", "-F", "-m", "0", "-b", "4096", "-E", lazy, "-N", &inodes, "-J", &journal];
    let made = run("mkfs.ext4", &arguments, &draft, &file).and_then(|()| file.sync_all());
    if let Err(fault) = made {
        let _ = fs::remove_file(&draft);
        return Err(fault);
    }
    fs::rename(&draft, image)?;
    image.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Lets the file system in an image, which nobody has mounted, take up the whole of it. `file` is the image, locked.
///
/// The kernel could do it to a mounted one, but only for a process that may override limits of resources, which a
/// service in a container may not.
pub(super) fn enlarge(image: &Path, file: &File) -> io::Result<()> {
    run("resize2fs", &["-f"], image, file)?;
    file.sync_all()
}

/// Whether the host has these programs.
pub(super) fn are_there() -> bool {
    ["mkfs.ext4", "resize2fs"].iter().all(|name| find(name).is_some())
}

fn find(name: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file())
}

fn run(name: &str, arguments: &[&str], image: &Path, file: &File) -> io::Result<()> {
    let program =
        find(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name} is not installed")))?;
    #[expect(clippy::disallowed_methods, reason = "the host's own programs know its file systems better than we could")]
    let mut child = Command::new(program)
        .args(arguments)
        .arg(image)
        .env_clear()
        .current_dir("/")
        .stdin(file.try_clone()?)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let ended = wait(&child);
    if !matches!(ended, Ok(true)) {
        let _ = child.kill();
    }
    let status = child.wait()?;
    if !ended? {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{name} does not end")));
    }
    if status.success() {
        return Ok(());
    }
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(MOST_SAID).read_to_end(&mut said)?;
    }
    Err(io::Error::other(format!("{name}: {status}: {}", String::from_utf8_lossy(&said).trim())))
}

/// Whether the program ended in time. What it says fits into the pipe's buffer.
fn wait(child: &std::process::Child) -> io::Result<bool> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Timespec { tv_sec: SECONDS, tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&deadline))? > 0)
}

const PLACES: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/bin", "/run/current-system/sw/bin", "/usr/local/sbin"];

/// Making takes 15 ms, enlarging some more; a host that needs so long cannot run commands either.
const SECONDS: i64 = 60;

const MOST_SAID: u64 = 4096;

/// MiB of disk for each MiB of journal, and the bounds of the journal in MiB; ext4 has none below 4.
const JOURNAL_PART: u64 = 64;
const LEAST_JOURNAL: u64 = 4;
const MOST_JOURNAL: u64 = 32;
