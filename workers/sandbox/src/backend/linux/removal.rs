//! Removing a folder that a stranger filled.
//!
//! It may be deeper than any stack or table of descriptors, and its folders may forbid their owner to enter them. So
//! nothing here recurses: each folder's folders are moved up beside it until only flat ones are left. Links are removed,
//! never followed; no process of the stranger is alive any more.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a folder and all that is in it. One that is not there is removed already.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    let mut moved: u64 = 0;
    match open(folder) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    loop {
        let mut was_empty = true;
        for entry in fs::read_dir(folder)? {
            was_empty = false;
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                flatten(folder, &entry.path(), &mut moved)?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        if was_empty {
            return fs::remove_dir(folder);
        }
    }
}

/// Empties one folder, its folders by moving them up to `top`, and removes it.
fn flatten(top: &Path, folder: &Path, moved: &mut u64) -> io::Result<()> {
    open(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            // A folder that is moved to another parent must be writable itself.
            open(&entry.path())?;
            move_up(top, &entry.path(), moved)?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

fn move_up(top: &Path, folder: &Path, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match fs::rename(folder, top.join(format!(".removed-{moved}"))) {
            // The stranger may have used the name.
            Err(fault) if matches!(fault.raw_os_error(), Some(libc::ENOTEMPTY | libc::EEXIST | libc::ENOTDIR)) => {}
            other => return other,
        }
    }
}

fn open(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::remove;

    #[test]
    fn a_folder_goes_with_everything_in_it_and_nothing_outside() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let folder = place.path().join("folder");
        fs::create_dir_all(folder.join("a/b/c")).unwrap();
        fs::create_dir(folder.join(".removed-1")).unwrap();
        fs::write(folder.join(".removed-1/taken"), "").unwrap();
        fs::write(folder.join(".removed-2"), "").unwrap();
        fs::write(folder.join("a/b/c/f"), "").unwrap();
        symlink(&outside, folder.join("a/link")).unwrap();
        symlink(&outside, folder.join("link")).unwrap();
        fs::set_permissions(folder.join("a/b"), Permissions::from_mode(0o0)).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }

    #[test]
    fn depth_does_not_matter() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for _ in 0..5000 {
            // Built from the inside out, since no path of that depth can be named.
            let inner = place.path().join("inner");
            fs::rename(&folder, &inner).unwrap();
            fs::create_dir(&folder).unwrap();
            fs::rename(&inner, folder.join("d")).unwrap();
        }
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_not_there_is_removed_already() {
        assert!(remove(Path::new("/nowhere/at/all")).is_ok());
    }
}
