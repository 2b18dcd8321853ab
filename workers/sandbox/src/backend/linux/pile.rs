//! The append-only file: a flag on the file itself, which only the host's root can set or clear.
//!
//! Bind mounts and namespaces do not weaken the flag: a tenant's root is not the host's. It is not taken on trust: each
//! time a pile is made, a twin made the same way is attacked from inside.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};

use super::launch::Users;
use super::layout::step;
use crate::backend::BackendError;

/// Whether files below this folder can be made append-only by this process.
pub(super) fn is_enforceable(folder: &Path) -> bool {
    // A file without a name, so that no end of this process can leave it behind.
    let trial = open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
    trial.is_ok_and(|trial| {
        let trial = File::from(trial);
        set_append_only(&trial).and_then(|()| clear_append_only(&trial)).is_ok()
    })
}

/// Makes a folder of the host's with one file in it that the tenant may append to, unless they are there.
pub(super) fn make(folder: &Path, users: Users, enforced: bool) -> Result<(), BackendError> {
    let making = || step(format!("make the pile {}", folder.display()));
    match fs::create_dir(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(making()(fault)),
        Ok(()) | Err(_) => {}
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(making())?;
    file(&folder.join(FILE), users, enforced).map_err(making())
}

/// Makes one file as the pile is made.
pub(super) fn file(path: &Path, users: Users, enforced: bool) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).mode(0o644).open(path)?;
    if ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::APPEND)) {
        return Ok(());
    }
    if let Users::Range(_) = users {
        chown(path, Some(users.guest()), Some(users.guest()))?;
    }
    if enforced {
        set_append_only(&file)?;
    }
    file.sync_all()
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
    for name in [FILE, TWIN] {
        remove(&folder.join(name))?;
    }
    match fs::remove_dir(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        Ok(()) | Err(_) => Ok(()),
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

/// What the self-test attacks instead of the pile, since nothing that is appended can be taken back.
pub(super) const TWIN: &str = ".self-test";

/// The attack: every line but the second must fail.
pub(super) const SELF_TEST: &str = "f=/pile/.self-test
( : > $f ) 2>/dev/null && exit 3
printf 'x\\n' >> $f || exit 4
( printf 'y' 1<> $f ) 2>/dev/null && exit 5
rm -f $f 2>/dev/null && exit 6
mv $f /pile/x 2>/dev/null && exit 7
chmod 600 $f 2>/dev/null && exit 8
[ \"$(cat $f)\" = x ] || exit 9
exit 0";
