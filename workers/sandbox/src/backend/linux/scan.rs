//! Counting what a stranger's folder takes up, a little at a time.
//!
//! The stranger may be at work in it meanwhile, and may have made it as hard to count as it can be: deeper than any
//! path, closed to its own owner, full of links. Links are counted, never followed; a folder that its owner closed is
//! opened to itself while it is counted. A file with several names counts once.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmod, fchmod, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// A count that is under way.
pub(super) struct Scan {
    total: Total,
    waiting: Vec<Waiting>,
    /// The folder that is being read.
    reading: Option<(Rc<Folder>, Dir)>,
    /// Files with several names that were counted already.
    several: HashSet<(u64, u64)>,
    /// How many folders are held open.
    held: Rc<Cell<u32>>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    /// Bytes on disk.
    pub(super) bytes: u64,
    pub(super) inodes: u64,
    /// Whether folders were left out, since too many of them would have to be held open at once to reach them.
    pub(super) too_deep: bool,
}

/// A folder that is still to be read, named from one that is held open for it.
struct Waiting {
    parent: Option<Rc<Folder>>,
    name: CString,
}

/// A folder that is open.
struct Folder {
    open: OwnedFd,
    /// Where it stands among those that their owner had closed.
    closed: Option<Key>,
    held: Rc<Cell<u32>>,
}

/// Device and inode.
type Key = (u64, u64);

/// A folder that its owner had closed, and by how many counts of this process it is open now.
struct Closed {
    mode: Mode,
    counts: u32,
}

/// Several may count the same folder at once; who is done first must not close it to the others.
static CLOSED: Mutex<BTreeMap<Key, Closed>> = Mutex::new(BTreeMap::new());

impl Drop for Folder {
    fn drop(&mut self) {
        self.held.set(self.held.get().saturating_sub(1));
        let Some(key) = self.closed else { return };
        let mut all = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(closed) = all.get_mut(&key) else { return };
        closed.counts = closed.counts.saturating_sub(1);
        if closed.counts == 0 {
            // It may be gone; and there is nobody to tell.
            let _ = fchmod(&self.open, closed.mode);
            all.remove(&key);
        }
    }
}

impl Scan {
    /// Begins with these folders; one that is not there counts nothing.
    pub(super) fn new(folders: impl IntoIterator<Item = impl AsRef<Path>>) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let mut scan = Self {
            total: Total::default(),
            waiting: Vec::new(),
            reading: None,
            several: HashSet::new(),
            held: Rc::default(),
        };
        for folder in folders {
            let name = CString::new(folder.as_ref().as_os_str().as_bytes())?;
            match statat(CWD, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => scan.count(&found),
                Err(Errno::NOENT) => continue,
                Err(fault) => return Err(fault.into()),
            }
            scan.waiting.push(Waiting { parent: None, name });
        }
        Ok(scan)
    }

    pub(super) fn total(&self) -> Total {
        self.total
    }

    /// Counts on until the end, which is true, or until this moment.
    pub(super) fn step(&mut self, until: Instant) -> io::Result<bool> {
        loop {
            for _ in 0..ENTRIES {
                if self.reading.is_none() && !self.descend()? {
                    return Ok(true);
                }
                self.entry()?;
            }
            if kit::clock::now() >= until {
                return Ok(false);
            }
        }
    }

    /// Takes up the next folder; false when there is none.
    fn descend(&mut self) -> io::Result<bool> {
        while let Some(next) = self.waiting.pop() {
            if self.held.get() >= MOST_HELD {
                self.total.too_deep = true;
                continue;
            }
            let opened = match &next.parent {
                Some(parent) => open(&parent.open, &next.name, &self.held),
                None => open(CWD, &next.name, &self.held),
            };
            match opened {
                Ok(folder) => {
                    let entries = Dir::read_from(&folder.open)?;
                    self.reading = Some((Rc::new(folder), entries));
                    return Ok(true);
                }
                // Its owner moved or removed it meanwhile.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(false)
    }

    fn entry(&mut self) -> io::Result<()> {
        let Some((folder, entries)) = &mut self.reading else { return Ok(()) };
        let Some(entry) = entries.read() else {
            self.reading = None;
            return Ok(());
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            return Ok(());
        }
        let found = match statat(&folder.open, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(fault) => return Err(fault.into()),
        };
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            self.waiting.push(Waiting { parent: Some(Rc::clone(folder)), name: name.to_owned() });
        }
        self.count(&found);
        Ok(())
    }

    fn count(&mut self, found: &Stat) {
        let folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if found.st_nlink > 1 && !folder && !self.several.insert((found.st_dev, found.st_ino)) {
            return;
        }
        self.total.inodes += 1;
        self.total.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK;
    }
}

/// Opens a folder for reading, also one that its owner closed to itself, as long as the owner is who runs this.
fn open(parent: impl AsFd, name: &CString, held: &Rc<Cell<u32>>) -> rustix::io::Result<Folder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let named = openat(parent, name, OFlags::PATH | flags, Mode::empty())?;
    let listed = || openat(&named, c".", flags, Mode::empty());
    let hold = |open, closed| {
        held.set(held.get() + 1);
        Ok(Folder { open, closed, held: Rc::clone(held) })
    };
    if geteuid().is_root() {
        return hold(listed()?, None);
    }
    let mut all = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = fstat(&named)?;
    let (mode, key) = (Mode::from_raw_mode(found.st_mode & 0o7777), (found.st_dev, found.st_ino));
    // The right to list it and the right to reach what is in it.
    let needed = Mode::RUSR | Mode::XUSR;
    if !mode.contains(needed) {
        chmod(format!("/proc/self/fd/{}", named.as_raw_fd()), mode | needed)?;
    } else if !all.contains_key(&key) {
        return hold(listed()?, None);
    }
    let open = listed()?;
    all.entry(key).or_insert(Closed { mode, counts: 0 }).counts += 1;
    hold(open, Some(key))
}

/// Folders that have others beside them are held open while what is below them is counted. Only who wants to hide
/// something has so many, one below the other.
const MOST_HELD: u32 = 200;

/// How many entries are counted between two looks at the clock.
const ENTRIES: u32 = 256;

/// What the kernel counts blocks of a file in, whatever the file system's own are.
const BLOCK: u64 = 512;

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use std::time::Duration;

    use super::{Scan, Total};

    fn scan(folder: &Path) -> Total {
        let mut scan = Scan::new([folder, Path::new("/nowhere/at/all")]).unwrap();
        while !scan.step(kit::clock::now() + Duration::from_secs(1)).unwrap() {}
        scan.total()
    }

    #[test]
    fn every_file_counts_once_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(place.path().join("outside"), vec![1; 1 << 20]).unwrap();
        let empty = scan(&folder);
        assert_eq!(empty.inodes, 3);
        fs::write(folder.join("a/f"), vec![1; 64 << 10]).unwrap();
        fs::hard_link(folder.join("a/f"), folder.join("a/b/g")).unwrap();
        symlink(place.path(), folder.join("a/link")).unwrap();
        fs::File::open(folder.join("a/f")).unwrap().sync_all().unwrap();
        let full = scan(&folder);
        assert_eq!(full.inodes, 5);
        assert_eq!(full.bytes - empty.bytes, folder.join("a/f").metadata().unwrap().blocks() * 512);
        assert!(full.bytes - empty.bytes >= 64 << 10);
    }

    #[test]
    fn a_sparse_file_counts_what_it_has_on_disk() {
        let place = tempfile::tempdir().unwrap();
        fs::File::create(place.path().join("f")).unwrap().set_len(1 << 40).unwrap();
        assert!(scan(place.path()).bytes < 1 << 20);
    }

    #[test]
    fn neither_depth_nor_a_closed_folder_hides_a_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("f"), vec![1; 64 << 10]).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o0)).unwrap();
        for _ in 0..3000 {
            let inner = place.path().join("inner");
            fs::rename(&folder, &inner).unwrap();
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&inner, Permissions::from_mode(0o700)).unwrap();
            fs::rename(&inner, folder.join("d")).unwrap();
            fs::set_permissions(folder.join("d"), Permissions::from_mode(0o0)).unwrap();
        }
        let total = scan(place.path());
        assert_eq!(total.inodes, 3003);
        assert!(total.bytes >= 64 << 10);
        super::super::removal::remove(&folder).unwrap();
    }

    #[test]
    fn folders_that_fork_too_deep_are_told_and_bounded_in_what_they_hold_open() {
        for (depth, too_deep) in [(150, false), (400, true)] {
            let place = tempfile::tempdir().unwrap();
            let mut path = place.path().to_owned();
            for _ in 0..depth {
                // In whatever order they are read, some wait while the deep one is counted, and hold their parent open.
                for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                    fs::create_dir(path.join(name)).unwrap();
                }
                path.push("a");
            }
            assert_eq!(scan(place.path()).too_deep, too_deep, "{depth}");
        }
    }

    #[test]
    fn a_step_that_has_no_time_does_a_bounded_part() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..3000 {
            fs::write(place.path().join(number.to_string()), "").unwrap();
        }
        let mut scan = Scan::new([place.path()]).unwrap();
        let mut steps = 1;
        while !scan.step(kit::clock::now()).unwrap() {
            steps += 1;
        }
        assert_eq!(scan.total().inodes, 3001);
        assert!(steps > 10, "{steps}");
    }
}
