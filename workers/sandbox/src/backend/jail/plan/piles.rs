//! The host's files of a tenant: its pile, its key, the word on whose they are, and the pile that all share.

use super::files::{Content, Draft, check_folders, unexpected};
use super::with_paths;
use crate::backend::host::Step;
use crate::backend::jail::facts::stats::Stats;
use crate::backend::jail::fault::JailFault;
use crate::backend::jail::places::Places;
use crate::backend::jail::text::HostPath;

/// What is found out before: of each path what is there, and what the marker says where there is one.
#[derive(Clone, Debug)]
pub(in crate::backend::jail) struct PileFacts {
    pub(in crate::backend::jail) stats: Stats,
    pub(in crate::backend::jail) marker: Option<String>,
}

/// What is to come to be.
#[derive(Clone, Debug)]
pub(in crate::backend::jail) struct PileWishes {
    /// Whether a pile is made where there is none: when a tenant is made, and never when one is opened.
    pub(in crate::backend::jail) pile: bool,
    /// The same of the shared pile. Where faculties keep it, it is there already and never made.
    pub(in crate::backend::jail) shared: bool,
    pub(in crate::backend::jail) bootstrap: HostPath,
    /// What a new key consists of.
    pub(in crate::backend::jail) key: Vec<u8>,
}

/// Every path on the host whose state the plan depends on.
pub(in crate::backend::jail) fn paths(places: &Places, bootstrap: &HostPath) -> Vec<HostPath> {
    let mut paths = places.pile_root.line();
    paths.extend([&places.staging, &places.pile_folder, &places.shared_folder].map(Clone::clone));
    paths.extend([&places.pile, &places.key, &places.marker, &places.shared].map(Clone::clone));
    paths.extend([&places.pile, &places.key, &places.marker, &places.shared].map(|file| places.staged(file)));
    paths.push(bootstrap.clone());
    paths
}

/// Refuses what is not a tenant's own, or not what it has to be, before anything is done.
///
/// A pile without a marker is older than markers: its folder is called by the tenant's digest, so it is taken over.
pub(in crate::backend::jail) fn check(
    places: &Places,
    facts: &PileFacts,
    wishes: &PileWishes,
) -> Result<(), JailFault> {
    for folder in [&places.staging, &places.pile_folder, &places.shared_folder] {
        check_folders(folder, &facts.stats)?;
    }
    for file in [&places.pile, &places.key, &places.marker, &places.shared] {
        if let Some(stat) = facts.stats.of(file).filter(|stat| !stat.is_file()) {
            return Err(unexpected(file, Some(stat), "a regular file"));
        }
    }
    if let Some(label) = facts.marker.as_deref().filter(|label| *label != places.tenant.as_str()) {
        return Err(JailFault::OtherPile { path: places.marker.clone(), label: label.to_owned() });
    }
    if !wishes.pile && facts.stats.of(&places.pile).is_none() {
        return Err(JailFault::HalfMade);
    }
    if !wishes.shared && facts.stats.of(&places.shared).is_none() {
        return Err(unexpected(&places.shared, None, "the pile that the faculties share"));
    }
    let copies = facts.stats.of(&places.pile).is_none() || facts.stats.of(&places.shared).is_none();
    match facts.stats.of(&wishes.bootstrap) {
        Some(stat) if stat.is_file() => Ok(()),
        other if copies => Err(unexpected(&wishes.bootstrap, other, "a regular file that new piles are a copy of")),
        Some(_) | None => Ok(()),
    }
}

/// The folders that are missing.
pub(in crate::backend::jail) fn folders(places: &Places, facts: &PileFacts) -> Vec<Step> {
    let missing = |folder: &HostPath| facts.stats.of(folder).is_none();
    let make = |why, folder| Step::new(why, with_paths("mkdir", ["-p"], &[folder]));
    let mut steps = Vec::new();
    if missing(&places.pile_folder) {
        steps.push(make(
            "make the folder of the tenant's piles, which stays when the sandbox goes",
            &places.pile_folder,
        ));
    }
    if missing(&places.shared_folder) {
        steps.push(make("make the folder of the pile that all share", &places.shared_folder));
    }
    steps
}

/// The files that are missing. The marker comes after the pile, so that a pile is never younger than the word on it.
pub(in crate::backend::jail) fn drafts(places: &Places, facts: &PileFacts, wishes: &PileWishes) -> Vec<Draft> {
    let draft =
        |what, place: &HostPath, content| Draft { what, staged: places.staged(place), place: place.clone(), content };
    let all = [
        draft("the tenant's pile", &places.pile, Content::CopyOf(wishes.bootstrap.clone())),
        draft("the tenant's key", &places.key, Content::Private(wishes.key.clone())),
        draft("the word on whose it is", &places.marker, Content::Private(places.tenant.as_str().into())),
        draft("the shared pile", &places.shared, Content::CopyOf(wishes.bootstrap.clone())),
    ];
    all.into_iter().filter(|draft| facts.stats.of(&draft.place).is_none()).collect()
}

/// Second names that a killed run left of files that are in their place.
pub(in crate::backend::jail) fn leftovers(places: &Places, facts: &PileFacts) -> Vec<Step> {
    let files = [&places.pile, &places.key, &places.marker, &places.shared];
    let left = files.into_iter().filter(|file| facts.stats.of(file).is_some()).map(|file| places.staged(file));
    left.filter(|staged| facts.stats.of(staged).is_some())
        .map(|staged| Step::new("remove what a killed run left", with_paths("rm", ["-f"], &[&staged])))
        .collect()
}

/// Lets the piles only grow from now on.
pub(in crate::backend::jail) fn seal(places: &Places, stats: &Stats) -> Vec<Step> {
    let open = [("the tenant's pile", &places.pile), ("the shared pile", &places.shared)];
    let open = open.into_iter().filter(|(_, file)| !stats.of(file).is_some_and(|stat| stat.is_append_only()));
    open.map(|(what, file)| Step::new(format!("let {what} only grow"), with_paths("chflags", ["sappnd"], &[file])))
        .collect()
}

/// Refuses what is not as the plans were to make it.
pub(in crate::backend::jail) fn check_sealed(places: &Places, stats: &Stats) -> Result<(), JailFault> {
    for file in [&places.pile, &places.shared] {
        match stats.of(file) {
            Some(stat) if stat.is_file() && stat.is_append_only() => {}
            Some(stat) if stat.is_file() => return Err(JailFault::NotAppendOnly(file.clone())),
            other => return Err(unexpected(file, other, "a regular file")),
        }
    }
    Ok(())
}

/// Removes a tenant's own pile for good. The kernel refuses that from securelevel 1 on.
pub(in crate::backend::jail) fn delete(places: &Places, stats: &Stats) -> Vec<Step> {
    let mut steps = Vec::new();
    if stats.of(&places.pile).is_some_and(|stat| stat.is_append_only()) {
        steps.push(Step::new("let the pile be removed", with_paths("chflags", ["nosappnd"], &[&places.pile])));
    }
    for file in [&places.pile, &places.key, &places.marker] {
        if stats.of(file).is_some() {
            steps.push(Step::new("remove the pile and what belongs to it", with_paths("rm", ["-f"], &[file])));
        }
    }
    if stats.of(&places.pile_folder).is_some() {
        steps.push(Step::new("remove its folder", with_paths("rmdir", [], &[&places.pile_folder])));
    }
    steps
}
