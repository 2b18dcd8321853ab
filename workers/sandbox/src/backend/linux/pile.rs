//! The append-only file: a flag on the file itself, which only the host's root can set or clear.
//!
//! Bind mounts and namespaces do not weaken the flag: a tenant's root is not the host's. It is not taken on trust: each
//! time a pile is made, a twin made the same way is attacked from inside.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, fchown};
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};

use super::launch::Users;
use super::layout::step;
use crate::backend::BackendError;
use crate::random;

/// Whether files below this folder can be made append-only by this process.
pub(super) fn is_enforceable(folder: &Path) -> bool {
    // A file without a name, so that no end of this process can leave it behind.
    let trial = open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
    trial.is_ok_and(|trial| {
        let trial = File::from(trial);
        set_append_only(&trial).and_then(|()| clear_append_only(&trial)).is_ok()
    })
}

/// Checks the file that new piles begin as a copy of, before anything is made.
pub(super) fn check_bootstrap(path: &Path) -> Result<(), BackendError> {
    let checking = || step(format!("use {} as the beginning of a pile", path.display()));
    // A pipe must not be waited for.
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let found = file.map_err(io::Error::from).and_then(|file| File::from(file).metadata()).map_err(checking())?;
    if found.is_file() { Ok(()) } else { Err(checking()(io::Error::other("it is not a regular file"))) }
}

/// Makes a folder of the host's with a pile in it that the tenant may append to, and a key that it may read, unless they
/// are there.
pub(super) fn make(folder: &Path, users: Users, enforced: bool, bootstrap: Option<&Path>) -> Result<(), BackendError> {
    let making = || step(format!("make the pile {}", folder.display()));
    host_folder(folder).map_err(making())?;
    let pile = folder.join(FILE);
    begin(&pile, bootstrap).and_then(|()| file(&pile, users, 0o644, enforced)).map_err(making())?;
    key(&folder.join(KEY), users).map_err(step(format!("make the key {}", folder.join(KEY).display())))
}

/// Makes the pile that all may append to, unless it is there.
pub(super) fn make_shared(folder: &Path, enforced: bool, bootstrap: Option<&Path>) -> Result<(), BackendError> {
    let making = || step(format!("make the shared pile {}", folder.display()));
    host_folder(folder).map_err(making())?;
    let pile = folder.join(SHARED_FILE);
    begin(&pile, bootstrap).and_then(|()| shared_file(&pile, enforced)).map_err(making())
}

/// Makes one file as the shared pile is made.
pub(super) fn shared_file(path: &Path, enforced: bool) -> io::Result<()> {
    // Nobody's in particular: each tenant has other users.
    file(path, Users::Single, 0o666, enforced)
}

/// Makes one file as a pile is made.
pub(super) fn file(path: &Path, users: Users, mode: u32, enforced: bool) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).mode(mode).open(path)?;
    if ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::APPEND)) {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    if let Users::Range(_) = users {
        chown(path, Some(users.guest()), Some(users.guest()))?;
    }
    if enforced {
        set_append_only(&file)?;
    }
    file.sync_all()
}

/// Begins a pile as a copy of another file, which it is wholly or not at all.
fn begin(pile: &Path, bootstrap: Option<&Path>) -> io::Result<()> {
    let Some(bootstrap) = bootstrap.filter(|_| !pile.exists()) else { return Ok(()) };
    place(pile, 0o600, |draft| io::copy(&mut File::open(bootstrap)?, draft).map(drop))
}

/// The tenant reads it and cannot change it: neither the file nor the folder is its own. Where there is one user only,
/// that is no more than a custom.
fn key(path: &Path, users: Users) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let (mode, group) = match users {
        Users::Range(_) => (0o440, Some(users.guest())),
        Users::Single => (0o400, None),
    };
    let text = format!("{:032x}{:032x}", random::bits(), random::bits());
    place(path, mode, |draft| {
        fchown(&*draft, None, group)?;
        draft.write_all(text.as_bytes())
    })
}

/// Makes a file where none is, whole or not at all.
fn place(path: &Path, mode: u32, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let draft_path = path.with_added_extension("new");
    remove(&draft_path)?;
    let mut draft = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft_path)?;
    fill(&mut draft)?;
    draft.sync_all()?;
    match fs::hard_link(&draft_path, path) {
        // Another has made it meanwhile.
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    fs::remove_file(&draft_path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn host_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
        Ok(()) | Err(_) => {}
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

/// Removes a file that may be append-only.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => {
            if ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::APPEND)) {
                clear_append_only(&file)?;
            }
            fs::remove_file(path)
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Removes the pile for good.
pub(super) fn destroy(folder: &Path) -> io::Result<()> {
    empty(folder, &[FILE, TWIN, KEY, "self.pile.new", "self.key.new"]).map(drop)
}

/// Removes the shared pile for good; whether there was one.
pub(super) fn destroy_shared(folder: &Path) -> io::Result<bool> {
    empty(folder, &[SHARED_FILE, TWIN, "shared.pile.new"])
}

fn empty(folder: &Path, names: &[&str]) -> io::Result<bool> {
    for name in names {
        remove(&folder.join(name))?;
    }
    match fs::remove_dir(folder) {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn set_append_only(file: &File) -> io::Result<()> {
    let flags = ioctl_getflags(file)?;
    ioctl_setflags(file, flags | IFlags::APPEND)?;
    // Some file systems take the call and ignore the flag.
    if ioctl_getflags(file)?.contains(IFlags::APPEND) { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

fn clear_append_only(file: &File) -> io::Result<()> {
    let flags = ioctl_getflags(file)?;
    Ok(ioctl_setflags(file, flags - IFlags::APPEND)?)
}

const FILE: &str = "self.pile";
const KEY: &str = "self.key";
const SHARED_FILE: &str = "shared.pile";

/// What the self-test attacks instead of the pile, since nothing that is appended can be taken back.
pub(super) const TWIN: &str = ".self-test";
