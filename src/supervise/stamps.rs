//! By what a file is told from the one that was read.

use std::path::PathBuf;

/// Files as they were when they were about to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// A change of its content, and a file in its place, change one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamps {
    /// Looks at these files; blocking. One that cannot be looked at is the same as none.
    #[must_use]
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let stamp = |path: PathBuf| {
            let stamp = stamp(&path);
            (path, stamp)
        };
        Self(paths.into_iter().map(stamp).collect())
    }

    /// Whether one of them is another now; blocking.
    #[must_use]
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, then)| stamp(path) != *then)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn stamp(path: &std::path::Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        size: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::Stamps;

    #[test]
    fn a_file_is_another_when_it_comes_goes_grows_or_is_replaced() {
        let place = tempfile::tempdir().expect("a folder");
        let (path, other) = (place.path().join("a"), place.path().join("b"));
        let now = || Stamps::of([path.clone()]);
        let absent = now();
        assert!(!absent.have_changed());
        std::fs::write(&path, "one").expect("written");
        assert!(absent.have_changed(), "it came");
        let first = now();
        assert!(!first.have_changed());
        std::fs::write(&other, "two").expect("written");
        std::fs::rename(&other, &path).expect("renamed");
        assert!(first.have_changed(), "another of the same size stands in its place");
        let second = now();
        std::fs::write(&path, "longer").expect("written");
        assert!(second.have_changed(), "it grew");
        let third = now();
        std::fs::remove_file(&path).expect("removed");
        assert!(third.have_changed(), "it went");
    }
}
