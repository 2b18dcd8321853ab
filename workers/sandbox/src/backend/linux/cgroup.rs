//! Control groups: what proves a command's death where the service may write them, and what bounds a tenant's memory.
//!
//! The second version, alone or beside the first, is used for killing and for proof; its controllers or the first
//! version's for limits. Whatever is not writable is simply not used, and said so in the backend's assurances.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::Tenant;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Pid;

use super::wire::HEAD_ROOM;
use crate::settings::Limits;

/// The folders of one service; each tenant has one of its own in each.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// Of the second version; absent where it cannot be written or is too old to kill.
    unified: Option<PathBuf>,
    /// Of the first version's controllers.
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    /// Whether the second version bounds memory and processes itself.
    controllers: bool,
}

impl Cgroups {
    /// Finds what may be written below this process's own groups. `name` tells services apart.
    pub(super) fn discover(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let make = |folder: Option<PathBuf>| {
            let folder = folder?.join(name);
            make_folder(&folder).ok()?;
            // The folder may be another user's that is left from long ago; only making one in it tells.
            let trial = folder.join(format!("try-{}", std::process::id()));
            let usable = fs::create_dir(&trial).is_ok() && fs::remove_dir(&trial).is_ok();
            usable.then_some(folder)
        };
        let unified = make(own_folder(&mounts, &own, None)).filter(|folder| may_kill(folder));
        let controllers = unified
            .as_deref()
            .is_some_and(|folder| folder.parent().is_some_and(enable_controllers) && enable_controllers(folder));
        let first = |controller| if controllers { None } else { make(own_folder(&mounts, &own, Some(controller))) };
        let (memory, pids) = (first("memory"), first("pids"));
        Self { unified, memory, pids, controllers }
    }

    pub(super) fn can_kill(&self) -> bool {
        self.unified.is_some()
    }

    pub(super) fn memory_by(&self) -> Option<&'static str> {
        if self.controllers { Some("cgroup v2") } else { self.memory.is_some().then_some("cgroup v1") }
    }

    pub(super) fn processes_by(&self) -> Option<&'static str> {
        if self.controllers { Some("cgroup v2") } else { self.pids.is_some().then_some("cgroup v1") }
    }

    /// Makes a tenant's groups, after ending what a killed predecessor may have left in them.
    pub(super) fn make(
        &self,
        tenant: &Tenant,
        limits: &Limits,
        deadline: Duration,
        owner: Option<u32>,
    ) -> io::Result<TenantCgroup> {
        // Another process of the same service, now gone, may have taken the empty folders with it.
        for folder in [&self.unified, &self.memory, &self.pids].into_iter().flatten() {
            make_folder(folder)?;
        }
        if let (true, Some(unified)) = (self.controllers, &self.unified) {
            enable_controllers(unified);
        }
        let groups = self.of(tenant);
        groups.remove(deadline)?;
        if let Some(unified) = &groups.unified {
            fs::create_dir(unified)?;
            fs::create_dir(unified.join(FIRST))?;
            if self.controllers {
                fs::write(unified.join("memory.max"), limits.memory.to_string())?;
                fs::write(unified.join("pids.max"), (limits.processes + HEAD_ROOM).to_string())?;
                let _ = fs::write(unified.join("memory.swap.max"), "0");
            }
            // The first process puts commands into groups itself, for which it must own the ancestor's list too.
            give(unified, owner)?;
            give(&unified.join(FIRST), owner)?;
        }
        if let Some(memory) = &groups.memory {
            fs::create_dir(memory)?;
            fs::write(memory.join("memory.limit_in_bytes"), limits.memory.to_string())?;
            let _ = fs::write(memory.join("memory.memsw.limit_in_bytes"), limits.memory.to_string());
        }
        if let Some(pids) = &groups.pids {
            fs::create_dir(pids)?;
            fs::write(pids.join("pids.max"), (limits.processes + HEAD_ROOM).to_string())?;
        }
        Ok(TenantCgroup { owner, ..groups })
    }

    fn of(&self, tenant: &Tenant) -> TenantCgroup {
        let join = |folder: &Option<PathBuf>| folder.as_ref().map(|folder| folder.join(format!("{TENANT}{tenant}")));
        TenantCgroup {
            unified: join(&self.unified),
            memory: join(&self.memory),
            pids: join(&self.pids),
            controllers: self.controllers,
            owner: None,
        }
    }

    /// The tenants that have groups, of whatever service of this state made them.
    pub(super) fn tenants(&self) -> BTreeSet<Tenant> {
        let folders = [&self.unified, &self.memory, &self.pids].into_iter().flatten();
        let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        entries.filter_map(|entry| Tenant::parse(entry.file_name().to_str()?.strip_prefix(TENANT)?).ok()).collect()
    }

    /// Ends what is left of a tenant that nobody holds.
    pub(super) fn sweep(&self, tenant: &Tenant, deadline: Duration) -> io::Result<()> {
        self.of(tenant).remove(deadline)
    }

    /// Removes the service's own folders, if no tenant is left in them.
    pub(super) fn leave(&self) {
        for folder in [&self.unified, &self.memory, &self.pids].into_iter().flatten() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// One tenant's groups.
#[derive(Debug)]
pub(super) struct TenantCgroup {
    unified: Option<PathBuf>,
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    controllers: bool,
    /// The user of the host that the first process is, where that is not the service's own.
    owner: Option<u32>,
}

impl TenantCgroup {
    /// The group that the first process is born in, which becomes the root of what the tenant sees.
    pub(super) fn birthplace(&self) -> io::Result<Option<OwnedFd>> {
        self.unified.as_deref().map(open_folder).transpose()
    }

    /// Puts a process that has just been born into the groups where it is to live.
    pub(super) fn adopt(&self, pid: Pid) -> io::Result<()> {
        let unified = self.unified.as_ref().map(|folder| folder.join(FIRST));
        for folder in [&unified, &self.memory, &self.pids].into_iter().flatten() {
            fs::write(folder.join("cgroup.procs"), pid.as_raw_nonzero().to_string())?;
        }
        if let (true, Some(unified)) = (self.controllers, &self.unified) {
            let _ = enable_controllers(unified);
        }
        Ok(())
    }

    /// Makes a group for one command; `None` where the kernel gives the service none.
    pub(super) fn command(&self, id: u64) -> io::Result<Option<(CommandCgroup, OwnedFd)>> {
        let Some(unified) = &self.unified else { return Ok(None) };
        let folder = unified.join(format!("job-{id}"));
        fs::create_dir(&folder)?;
        let group = CommandCgroup(folder);
        let prepared = give(&group.0, self.owner).and_then(|()| open_folder(&group.0));
        match prepared {
            Ok(descriptor) => Ok(Some((group, descriptor))),
            Err(fault) => {
                group.remove();
                Err(fault)
            }
        }
    }

    /// How many of the tenant's processes the kernel has ended for want of memory.
    pub(super) fn ended_for_memory(&self) -> u64 {
        let file = match (&self.memory, &self.unified) {
            (Some(memory), _) => memory.join("memory.oom_control"),
            (None, Some(unified)) if self.controllers => unified.join("memory.events"),
            (None, _) => return 0,
        };
        fs::read_to_string(file).ok().and_then(|text| field(&text, "oom_kill")).unwrap_or(0)
    }

    /// Ends whatever is in the groups and removes them. A group that is not there is removed already.
    pub(super) fn remove(&self, deadline: Duration) -> io::Result<()> {
        let until = kit::clock::now() + deadline;
        if let Some(unified) = &self.unified
            && unified.exists()
        {
            loop {
                fs::write(unified.join("cgroup.kill"), "1")?;
                if !populated(unified) {
                    break;
                }
                pause(until)?;
            }
            remove_below(unified, until)?;
        }
        for folder in [&self.memory, &self.pids].into_iter().flatten() {
            remove_folder(folder, until)?;
        }
        Ok(())
    }
}

/// The group of one command's whole tree.
#[derive(Debug)]
pub(super) struct CommandCgroup(PathBuf);

impl CommandCgroup {
    /// Tells the kernel to end all that is in it; what is forked meanwhile is ended too.
    pub(super) fn kill(&self) {
        // A group that is gone holds nothing, and `is_populated` is what proves.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    pub(super) fn is_populated(&self) -> bool {
        populated(&self.0)
    }

    /// Removes the group if it is empty; the kernel refuses otherwise.
    pub(super) fn remove(&self) -> bool {
        match fs::remove_dir(&self.0) {
            Ok(()) => true,
            Err(fault) => fault.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// A group whose state cannot be read although it exists counts as populated: only the kernel's word is proof.
fn populated(folder: &Path) -> bool {
    match fs::read_to_string(folder.join("cgroup.events")) {
        Ok(text) => field(&text, "populated") != Some(0),
        Err(fault) => !matches!(fault.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)),
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Gives the list of a group's processes to the tenant's first process.
fn give(folder: &Path, owner: Option<u32>) -> io::Result<()> {
    match owner {
        Some(owner) => chown(folder.join("cgroup.procs"), Some(owner), None),
        None => Ok(()),
    }
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    Ok(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn remove_below(folder: &Path, until: std::time::Instant) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path(), until)?;
        }
    }
    remove_folder(folder, until)
}

/// The kernel needs a moment between the death of the last process and an empty group.
fn remove_folder(folder: &Path, until: std::time::Instant) -> io::Result<()> {
    loop {
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(fault) if fault.raw_os_error() == Some(libc::EBUSY) => pause(until)?,
            Err(fault) => return Err(fault),
        }
    }
}

/// Waits a moment on a thread that may block.
fn pause(until: std::time::Instant) -> io::Result<()> {
    if kit::clock::now() >= until {
        return Err(io::ErrorKind::TimedOut.into());
    }
    std::thread::sleep(Duration::from_millis(1));
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => Err(fault),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether groups below `folder` can be made and killed: tried, since nothing else tells for sure.
fn may_kill(folder: &Path) -> bool {
    let trial = folder.join(format!("try-{}", std::process::id()));
    if fs::create_dir(&trial).is_err() {
        return false;
    }
    let worked = fs::write(trial.join("cgroup.kill"), "1").is_ok()
        && fs::OpenOptions::new().write(true).open(trial.join("cgroup.procs")).is_ok();
    let _ = fs::remove_dir(&trial);
    worked
}

fn enable_controllers(folder: &Path) -> bool {
    let enabled = || {
        let text = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        ["memory", "pids"].iter().all(|wanted| text.split_whitespace().any(|controller| controller == *wanted))
    };
    enabled() || (fs::write(folder.join("cgroup.subtree_control"), "+memory +pids").is_ok() && enabled())
}

/// The folder of this process's own group, of the second version or of one controller of the first.
fn own_folder(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let found = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(wanted) => controllers.split(',').any(|name| name == wanted),
        };
        found.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
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

/// Where the first process itself lives, apart from commands, as the second version asks once it bounds anything.
const FIRST: &str = "init";

/// What a tenant's folder begins with.
const TENANT: &str = "t-";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::own_folder;

    const HYBRID: &str = "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                          31 20 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn both_versions_are_found_on_a_hybrid_host() {
        let own = "4:memory:/a/b\n0::/c";
        assert_eq!(own_folder(HYBRID, own, Some("memory")), Some(PathBuf::from("/sys/fs/cgroup/memory/a/b")));
        assert_eq!(own_folder(HYBRID, own, None), Some(PathBuf::from("/sys/fs/cgroup/unified/c")));
        assert_eq!(own_folder(HYBRID, own, Some("pids")), None);
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_is_entered_at_its_root() {
        let mounts = "31 20 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(own_folder(mounts, "0::/docker/x/y", None), Some(PathBuf::from("/sys/fs/cgroup/y")));
    }
}
