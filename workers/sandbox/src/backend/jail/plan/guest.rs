//! What is put into a tenant's root folder while no process of the tenant's is alive.
//!
//! The folder was the tenant's own before, so nothing in it is gone through that might be a link: whatever is not a plain
//! folder or file where one has to be is refused.

use super::files::unexpected;
use super::with_paths;
use crate::backend::host::{Argv, Step};
use crate::backend::jail::facts::mounts::Mounts;
use crate::backend::jail::facts::stats::Stats;
use crate::backend::jail::fault::JailFault;
use crate::backend::jail::persona::Persona;
use crate::backend::jail::places::{
    DEV, HOME, KEY, PILE, PILE_FOLDER, PROFILE, Places, RESOLVER, Root, SHARED, SHARED_FOLDER,
};
use crate::backend::jail::shell::quoted;
use crate::backend::jail::text::HostPath;

/// A file of the host that the tenant finds in its own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) struct Bind {
    what: &'static str,
    source: HostPath,
    guest: &'static str,
    is_read_only: bool,
}

pub(in crate::backend::jail) fn binds(places: &Places) -> [Bind; 3] {
    let bind =
        |what, source: &HostPath, guest, is_read_only| Bind { what, source: source.clone(), guest, is_read_only };
    [
        bind("the tenant's pile", &places.pile, PILE, false),
        bind("the tenant's key", &places.key, KEY, true),
        bind("the shared pile", &places.shared, SHARED, false),
    ]
}

/// Every path in the tenant's folder whose state the plan depends on.
pub(in crate::backend::jail) fn paths(root: &Root) -> Vec<HostPath> {
    let inside = [DEV, "/etc", PROFILE, RESOLVER, PILE_FOLDER, PILE, KEY, SHARED_FOLDER, SHARED, HOME];
    [root.path.clone()].into_iter().chain(inside.into_iter().map(|guest| root.inside(guest))).collect()
}

/// Refuses a folder in which a link or a device stands where something of the host's is to be put.
pub(in crate::backend::jail) fn check(root: &Root, stats: &Stats) -> Result<(), JailFault> {
    for (guest, must_be) in
        [("", true), (DEV, true), ("/etc", true), (PILE_FOLDER, false), (SHARED_FOLDER, false), (HOME, false)]
    {
        let path = if guest.is_empty() { root.path.clone() } else { root.inside(guest) };
        match stats.of(&path) {
            Some(stat) if stat.is_folder() => {}
            None if !must_be => {}
            other => return Err(unexpected(&path, other, "a folder")),
        }
    }
    for guest in [PILE, KEY, SHARED, PROFILE] {
        let path = root.inside(guest);
        if let Some(stat) = stats.of(&path).filter(|stat| !stat.is_file()) {
            return Err(unexpected(&path, Some(stat), "a regular file"));
        }
    }
    Ok(())
}

/// Takes away the mounts of whole folders that the first boxes had: through them a tenant could reach what is beside its
/// pile.
pub(in crate::backend::jail) fn unmount_legacy(root: &Root, mounts: &Mounts) -> Vec<Step> {
    let legacy = [PILE_FOLDER, SHARED_FOLDER].into_iter();
    let steps = legacy.flat_map(|guest| {
        let count = mounts.upon(&root.spelled_inside(guest));
        std::iter::repeat_n(
            unmount("take away the mount of a whole folder, as old boxes have it", &root.inside(guest)),
            count,
        )
    });
    steps.collect()
}

pub(in crate::backend::jail) fn check_no_legacy(root: &Root, mounts: &Mounts) -> Result<(), JailFault> {
    for guest in [PILE_FOLDER, SHARED_FOLDER] {
        let target = root.spelled_inside(guest);
        if mounts.upon(&target) > 0 {
            return Err(JailFault::StrangeMount(mounts.describe(&target)));
        }
    }
    Ok(())
}

/// Mounts what is not mounted yet: the devices, and the host's files.
pub(in crate::backend::jail) fn mount(root: &Root, binds: &[Bind], stats: &Stats, mounts: &Mounts) -> Vec<Step> {
    let mut steps = Vec::new();
    if mounts.upon(&root.spelled_inside(DEV)) == 0 {
        let dev = root.inside(DEV);
        let argv = Argv::new("mount", ["-t", "devfs", "-o", "ruleset=4", "devfs", dev.as_str()]).sudo();
        steps.push(Step::new("give it the devices that a jail may have", argv).undo(unmount_argv(&dev)));
    }
    let mut made = Vec::new();
    for bind in binds {
        if mounts.upon(&root.spelled_inside(bind.guest)) > 0 {
            continue;
        }
        let target = root.inside(bind.guest);
        let folder = bind.guest.rsplit_once('/').map_or("", |(folder, _)| folder);
        if stats.of(&root.inside(folder)).is_none() && !made.contains(&folder) {
            made.push(folder);
            steps.push(Step::new("make a folder for it", with_paths("mkdir", ["-p"], &[&root.inside(folder)])));
        }
        if stats.of(&target).is_none() {
            steps.push(Step::new("make a file to mount upon", with_paths("touch", [], &[&target])));
        }
        let mut argv = Argv::new("mount", ["-t", "nullfs"]).sudo();
        if bind.is_read_only {
            argv = argv.and(["-o", "ro"]);
        }
        let argv = argv.and([bind.source.as_str(), target.as_str()]);
        steps.push(Step::new(format!("let it see {}, that one file", bind.what), argv).undo(unmount_argv(&target)));
    }
    steps
}

/// Refuses anything but exactly the mounts that there have to be.
pub(in crate::backend::jail) fn check_mounts(root: &Root, binds: &[Bind], mounts: &Mounts) -> Result<(), JailFault> {
    let wrong = |source: &str, target: String| {
        let found = mounts.describe(&target);
        JailFault::WrongMount { target, source_file: source.to_owned(), found }
    };
    let dev = root.spelled_inside(DEV);
    if !mounts.is_exactly("devfs", &dev, "devfs", false) {
        return Err(wrong("devfs", dev));
    }
    for bind in binds {
        let target = root.spelled_inside(bind.guest);
        if !mounts.is_exactly(bind.source.as_str(), &target, "nullfs", bind.is_read_only) {
            return Err(wrong(bind.source.as_str(), target));
        }
    }
    check_strange(root, mounts)
}

/// Refuses a folder upon which something is mounted that nobody here has mounted.
pub(in crate::backend::jail) fn check_strange(root: &Root, mounts: &Mounts) -> Result<(), JailFault> {
    let ours = OURS.map(|guest| format!(" on {}", root.spelled_inside(guest)));
    let strange = mounts.below(&root.spelled).find(|pair| !ours.iter().any(|tail| pair.ends_with(tail)));
    strange.map_or(Ok(()), |pair| Err(JailFault::StrangeMount(pair.to_owned())))
}

/// Unmounts whatever is mounted of ours, as often as it is.
pub(in crate::backend::jail) fn unmount_all(root: &Root, mounts: &Mounts) -> Vec<Step> {
    unmount_beyond(root, mounts, |_| 0)
}

/// The same of what was not mounted before.
pub(in crate::backend::jail) fn unmount_new(root: &Root, before: &Mounts, now: &Mounts) -> Vec<Step> {
    unmount_beyond(root, now, |target| before.upon(target))
}

fn unmount_beyond(root: &Root, mounts: &Mounts, kept: impl Fn(&str) -> usize) -> Vec<Step> {
    let steps = OURS.into_iter().flat_map(|guest| {
        let target = root.spelled_inside(guest);
        let count = mounts.upon(&target).saturating_sub(kept(&target));
        std::iter::repeat_n(unmount(&format!("unmount {guest}"), &root.inside(guest)), count)
    });
    steps.collect()
}

/// Makes the folder in which a login shell begins, and has it begin there: written once, which a mark shows.
pub(in crate::backend::jail) fn profile(
    root: &Root,
    stats: &Stats,
    profile: Option<&str>,
    persona: &Persona,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let home = root.inside(HOME);
    if stats.of(&home).is_none() {
        steps.push(Step::new("make the folder in which commands begin", with_paths("mkdir", ["-p"], &[&home])));
    }
    if !profile.is_some_and(|text| text.contains(MARK) || text.contains(ORIGINALS)) {
        let argv = with_paths("tee", ["-a"], &[&root.inside(PROFILE)]);
        let why = "tell login shells where to begin, and what lies where; once, and this mark shows it";
        steps.push(Step::new(why, argv).input(block(persona)));
    }
    steps
}

fn block(persona: &Persona) -> String {
    format!(
        "\n{MARK}\n\
         PATH=/opt/faculties:$PATH\n\
         PILE={PILE}\n\
         TRIBLESPACE_KEY={KEY}\n\
         PERSONA={}\n\
         export PATH PILE TRIBLESPACE_KEY PERSONA\n\
         cd {HOME}\n\
         # <<< playground\n",
        quoted(&persona.label)
    )
}

/// Gives the tenant the host's way to names. A link in its place is the tenant's, and is taken away instead of followed.
pub(in crate::backend::jail) fn resolver(root: &Root, stats: &Stats) -> Result<Vec<Step>, JailFault> {
    let path = root.inside(RESOLVER);
    let mut steps = Vec::new();
    match stats.of(&path) {
        None => {}
        Some(stat) if stat.is_file() => {}
        Some(stat) if stat.is_folder() => return Err(unexpected(&path, Some(stat), "a regular file")),
        Some(_) => steps.push(Step::new("remove what stands in its way", with_paths("rm", ["-f"], &[&path]))),
    }
    let argv = Argv::new("cp", [RESOLVER, path.as_str()]).sudo();
    steps.push(Step::new("let it look up names as the host does", argv));
    Ok(steps)
}

fn unmount(why: &str, target: &HostPath) -> Step {
    Step::new(why, unmount_argv(target))
}

fn unmount_argv(target: &HostPath) -> Argv {
    with_paths("umount", ["-f"], &[target])
}

/// The innermost first.
const OURS: [&str; 6] = [KEY, PILE, SHARED, PILE_FOLDER, SHARED_FOLDER, DEV];

const MARK: &str = "# >>> playground";

/// What the original wrote into a profile.
const ORIGINALS: &str = "PILE=/pile/self.pile";
