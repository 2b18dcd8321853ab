//! Where a service may make groups: below its own group, in whichever hierarchies it may write.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::controller::{self, Controller};
use super::orphans;

/// A hierarchy of the second version.
pub(super) struct Unified {
    pub(super) folder: PathBuf,
    /// What it bounds itself, in the service's folder and below.
    pub(super) controllers: Vec<Controller>,
}

/// Where groups of the second version may be made and killed. The group beside the service's own is taken if that one
/// was given to the service and only there anything can be bounded: the kernel bounds nothing below a group that has
/// processes itself.
pub(super) fn unified(hierarchies: &Hierarchies, name: &str, state: &Path) -> Option<Unified> {
    let own = hierarchies.own(None)?;
    let above = own.parent().filter(|above| is_delegated(above) && is_empty(above)).map(Path::to_owned);
    let bounding = [Some(own.clone()), above].into_iter().flatten().find_map(|place| {
        if !may_bound(&place) || controller::enable(&place).is_empty() {
            return None;
        }
        let folder = usable(&place, name, state).filter(|folder| may_kill(folder))?;
        let controllers = controller::enable(&folder);
        Some(Unified { folder, controllers }).filter(|found| !found.controllers.is_empty())
    });
    bounding.or_else(|| {
        let folder = usable(&own, name, state).filter(|folder| may_kill(folder))?;
        Some(Unified { folder, controllers: Vec::new() })
    })
}

/// The service's folder for one controller of the first version.
pub(super) fn first(hierarchies: &Hierarchies, controller: Controller, name: &str, state: &Path) -> Option<PathBuf> {
    usable(&hierarchies.own(Some(controller.in_first()))?, name, state)
}

/// Makes a folder unless it is there.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => Err(fault),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn usable(place: &Path, name: &str, state: &Path) -> Option<PathBuf> {
    let folder = place.join(name);
    make_folder(&folder).ok()?;
    orphans::mark(&folder, state);
    orphans::sweep(place, &folder);
    // The folder may be another user's that is left from long ago; only making one in it tells.
    let trial = orphans::trial(&folder);
    let usable = fs::create_dir(&trial).is_ok() && fs::remove_dir(&trial).is_ok();
    usable.then_some(folder)
}

/// Whether groups below `folder` can be made and killed: tried, since nothing else tells for sure.
fn may_kill(folder: &Path) -> bool {
    let trial = orphans::trial(folder);
    if fs::create_dir(&trial).is_err() {
        return false;
    }
    let worked = fs::write(trial.join("cgroup.kill"), "1").is_ok()
        && fs::OpenOptions::new().write(true).open(trial.join("cgroup.procs")).is_ok();
    let _ = fs::remove_dir(&trial);
    worked
}

/// Whether what is made below can be bounded: not below a group with processes, unless it is the host's root.
fn may_bound(place: &Path) -> bool {
    !place.join("cgroup.type").exists() || is_empty(place)
}

fn is_empty(place: &Path) -> bool {
    fs::read_to_string(place.join("cgroup.procs")).is_ok_and(|processes| processes.trim().is_empty())
}

/// Whether the host's own keeper of groups has given this one away.
fn is_delegated(place: &Path) -> bool {
    if !geteuid().is_root() {
        // It belongs to this user only if it was given to it.
        return place.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw());
    }
    ["user.delegate", "trusted.delegate"].iter().any(|mark| {
        let mut value = [0u8; 1];
        rustix::fs::getxattr(place, *mark, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    })
}

/// Which hierarchies are mounted where, and which group of each is this process's.
pub(super) struct Hierarchies {
    mounts: String,
    own: String,
}

impl Hierarchies {
    pub(super) fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { mounts: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") }
    }

    /// The folder of this process's own group, of the second version or of one controller of the first.
    fn own(&self, controller: Option<&str>) -> Option<PathBuf> {
        let path = self.own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let found = match controller {
                None => number == "0" && controllers.is_empty(),
                Some(wanted) => controllers.split(',').any(|name| name == wanted),
            };
            found.then_some(path)
        })?;
        self.mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut place = place.split(' ').skip(3);
            let (root, point) = (place.next()?, place.next()?);
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let found = match controller {
                None => name == "cgroup2",
                Some(wanted) => name == "cgroup" && options.split(',').any(|option| option == wanted),
            };
            // A container's mount may show only a part of the hierarchy.
            let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
            found.then(|| Path::new(point).join(below))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::Hierarchies;

    const HYBRID: &str = "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                          31 20 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    fn own(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
        Hierarchies { mounts: mounts.to_owned(), own: own.to_owned() }.own(controller)
    }

    #[test]
    fn both_versions_are_found_on_a_hybrid_host() {
        let groups = "4:memory:/a/b\n0::/c";
        assert_eq!(own(HYBRID, groups, Some("memory")), Some(PathBuf::from("/sys/fs/cgroup/memory/a/b")));
        assert_eq!(own(HYBRID, groups, None), Some(PathBuf::from("/sys/fs/cgroup/unified/c")));
        assert_eq!(own(HYBRID, groups, Some("pids")), None);
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_is_entered_at_its_root() {
        let mounts = "31 20 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(own(mounts, "0::/docker/x/y", None), Some(PathBuf::from("/sys/fs/cgroup/y")));
    }
}
