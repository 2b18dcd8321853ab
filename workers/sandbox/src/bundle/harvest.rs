//! Programs, taken out of a folder that root of another machine could write to.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};

/// Copies what was built in `scratch` to a new file. No link is followed, or it could lead to this host's files. Blocks.
pub(super) fn take(scratch: &Path, program: &str, place: &Path) -> io::Result<()> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let scratch: OwnedFd = rustix::fs::open(scratch, folder, Mode::empty())?;
    let release = openat(&scratch, "release", folder, Mode::empty())?;
    let file = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = File::from(openat(&release, program, file, Mode::empty())?);
    let found = from.metadata()?;
    if !found.is_file() || found.len() == 0 {
        return Err(io::Error::other("what was built is no file with something in it"));
    }
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o755).open(place)?;
    if io::copy(&mut from.take(MOST + 1), &mut to)? > MOST {
        return Err(io::Error::other(format!("it is larger than {MOST} bytes")));
    }
    to.set_permissions(Permissions::from_mode(0o755))?;
    to.sync_all()
}

/// No program is.
const MOST: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::take;

    #[test]
    fn a_program_is_taken_and_nothing_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (scratch, place) = (folder.path().join("scratch"), folder.path().join("taken"));
        fs::create_dir_all(scratch.join("release/folder")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(scratch.join("release/wiki"), "program").unwrap();
        fs::write(scratch.join("release/empty"), "").unwrap();
        symlink(folder.path().join("secret"), scratch.join("release/link")).unwrap();
        for name in ["link", "folder", "empty", "nothing"] {
            take(&scratch, name, &place).unwrap_err();
            assert!(!place.exists(), "{name}");
        }
        take(&scratch, "wiki", &place).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "program");
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o755);
        fs::rename(scratch.join("release"), folder.path().join("elsewhere")).unwrap();
        symlink(folder.path().join("elsewhere"), scratch.join("release")).unwrap();
        take(&scratch, "wiki", &folder.path().join("again")).unwrap_err();
    }
}
