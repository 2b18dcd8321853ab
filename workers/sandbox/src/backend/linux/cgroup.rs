//! Control groups: what proves a command's death where the service may write them, and what bounds a tenant.
//!
//! The second version, alone or beside the first, is used for killing and for proof; its controllers or the first
//! version's for limits, each where it is to be had. Whatever is not writable is simply not used, and said so in the
//! backend's assurances.
//!
//! ```text
//! the service's own group, or the one above
//! └─ playground-…           what all tenants have together: less than the host
//!    └─ t-alice             what alice has
//!       ├─ init             her first process          (second version)
//!       └─ job-1            one command and its tree   (second version)
//! ```

mod controller;
pub(super) mod orphans;
mod place;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::Tenant;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use self::controller::{Controller, Version};
use self::place::{Hierarchies, Unified, make_folder};
use crate::backend::BackendError;
use crate::backend::linux::layout::step;
use crate::settings::Limits;

/// The folders of one service; each tenant has one of its own in each.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// Whose they are.
    state: PathBuf,
    /// Of the second version; absent where it cannot be written or is too old to kill.
    unified: Option<PathBuf>,
    /// What the second version bounds itself.
    second: Vec<Controller>,
    /// Of the first version, for what the second one does not bound.
    first: Vec<(Controller, PathBuf)>,
}

impl Cgroups {
    /// Finds what may be written below this process's own groups, and clears up after services whose state is gone.
    pub(super) fn discover(state: &Path) -> Result<Self, BackendError> {
        let looking = || step(format!("look at {}", state.display()));
        let state = state.canonicalize().map_err(looking())?;
        let name = orphans::name(&state.metadata().map_err(looking())?);
        let hierarchies = Hierarchies::read();
        let (unified, second) = match place::unified(&hierarchies, &name, &state) {
            Some(Unified { folder, controllers }) => (Some(folder), controllers),
            None => (None, Vec::new()),
        };
        let first = Controller::ALL
            .into_iter()
            .filter(|controller| !second.contains(controller))
            .filter_map(|controller| Some((controller, place::first(&hierarchies, controller, &name, &state)?)))
            .collect();
        Ok(Self { state, unified, second, first })
    }

    pub(super) fn can_kill(&self) -> bool {
        self.unified.is_some()
    }

    pub(super) fn memory_by(&self) -> Option<&'static str> {
        self.by(Controller::Memory)
    }

    pub(super) fn processes_by(&self) -> Option<&'static str> {
        self.by(Controller::Processes)
    }

    pub(super) fn cpu_by(&self) -> Option<&'static str> {
        self.by(Controller::Cpu)
    }

    fn by(&self, wanted: Controller) -> Option<&'static str> {
        if self.second.contains(&wanted) {
            return Some("cgroup v2");
        }
        self.first.iter().any(|(controller, _)| *controller == wanted).then_some("cgroup v1")
    }

    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.first.iter().map(|(_, folder)| folder))
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
        self.folders().try_for_each(|folder| {
            make_folder(folder)?;
            orphans::mark(folder, &self.state);
            Ok::<(), io::Error>(())
        })?;
        if let (false, Some(unified)) = (self.second.is_empty(), &self.unified) {
            controller::enable(unified);
            self.second.iter().try_for_each(|controller| controller.bound_all(Version::Second, unified))?;
        }
        for (controller, folder) in &self.first {
            controller.bound_all(Version::First, folder)?;
        }
        let groups = self.of(tenant);
        groups.remove(deadline)?;
        if let Some(unified) = &groups.unified {
            fs::create_dir(unified)?;
            fs::create_dir(unified.join(FIRST))?;
            self.second.iter().try_for_each(|controller| controller.bound(Version::Second, unified, limits))?;
            // The first process puts commands into groups itself, for which it must own the ancestor's list too.
            give(unified, owner)?;
            give(&unified.join(FIRST), owner)?;
        }
        for (controller, folder) in &groups.first {
            fs::create_dir(folder)?;
            controller.bound(Version::First, folder, limits)?;
        }
        Ok(TenantCgroup { owner, ..groups })
    }

    fn of(&self, tenant: &Tenant) -> TenantCgroup {
        let join = |folder: &PathBuf| folder.join(format!("{TENANT}{tenant}"));
        TenantCgroup {
            unified: self.unified.as_ref().map(join),
            second: self.second.clone(),
            first: self.first.iter().map(|(controller, folder)| (*controller, join(folder))).collect(),
            owner: None,
        }
    }

    /// The tenants that have groups, of whatever service of this state made them.
    pub(super) fn tenants(&self) -> BTreeSet<Tenant> {
        let entries = self.folders().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        entries.filter_map(|entry| Tenant::parse(entry.file_name().to_str()?.strip_prefix(TENANT)?).ok()).collect()
    }

    /// Ends what is left of a tenant that nobody holds.
    pub(super) fn sweep(&self, tenant: &Tenant, deadline: Duration) -> io::Result<()> {
        self.of(tenant).remove(deadline)
    }

    /// Removes the service's own folders, if no tenant is left in them.
    pub(super) fn leave(&self) {
        for folder in self.folders() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// One tenant's groups.
#[derive(Debug)]
pub(super) struct TenantCgroup {
    unified: Option<PathBuf>,
    second: Vec<Controller>,
    first: Vec<(Controller, PathBuf)>,
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
        for folder in unified.iter().chain(self.first.iter().map(|(_, folder)| folder)) {
            fs::write(folder.join("cgroup.procs"), pid.as_raw_nonzero().to_string())?;
        }
        if let (false, Some(unified)) = (self.second.is_empty(), &self.unified) {
            // A command's group then counts for itself; the bounds hold all the same where it cannot.
            controller::enable(unified);
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
        let first = self.first.iter().find(|(controller, _)| *controller == Controller::Memory);
        let file = match (first, &self.unified) {
            (Some((_, folder)), _) => folder.join("memory.oom_control"),
            (None, Some(unified)) => unified.join(EVENTS),
            (None, None) => return 0,
        };
        ended_for_memory(&file).unwrap_or(0)
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
        for (_, folder) in &self.first {
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

    /// Tells each process by itself. The kernel passes over one whose first thread has ended while others of it live.
    pub(super) fn kill_each(&self) {
        let listed = || -> Vec<i32> {
            let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            text.lines().filter_map(|line| line.parse().ok()).collect()
        };
        let handles: Vec<_> = listed()
            .into_iter()
            .filter_map(|number| Some((number, pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?)))
            .collect();
        // Whoever is still listed under its number is the one that was opened, and not a stranger who was given it since.
        let still = listed();
        for (_, handle) in handles.iter().filter(|(number, _)| still.contains(number)) {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    pub(super) fn is_populated(&self) -> bool {
        populated(&self.0)
    }

    /// How many processes are in it, unless the kernel does not say.
    pub(super) fn population(&self) -> Option<usize> {
        fs::read_to_string(self.0.join("cgroup.procs")).ok().map(|text| text.lines().count())
    }

    /// How many of the command's processes the kernel has ended for want of memory; `None` where only the tenant's are
    /// counted.
    pub(super) fn ended_for_memory(&self) -> Option<u64> {
        ended_for_memory(&self.0.join(EVENTS))
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

fn ended_for_memory(file: &Path) -> Option<u64> {
    field(&fs::read_to_string(file).ok()?, "oom_kill")
}

/// Where the first process itself lives, apart from commands, as the second version asks once it bounds anything.
const FIRST: &str = "init";

/// What a tenant's folder begins with.
const TENANT: &str = "t-";

/// Where the second version counts what it has done for want of memory.
const EVENTS: &str = "memory.events";
