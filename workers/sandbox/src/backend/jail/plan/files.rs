//! Files that come to be whole or not at all, in folders that nobody but root writes to.
//!
//! A file is finished below the staging folder, which only root can enter, and then linked to its place. Linking makes
//! nothing anew and follows nothing: whoever was first stays, and a link that somebody put there is not gone through.

use super::with_paths;
use crate::backend::host::Step;
use crate::backend::jail::facts::stats::{Stat, Stats};
use crate::backend::jail::fault::JailFault;
use crate::backend::jail::text::HostPath;

/// A file to be made, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) struct Draft {
    pub(in crate::backend::jail) what: &'static str,
    pub(in crate::backend::jail) staged: HostPath,
    pub(in crate::backend::jail) place: HostPath,
    pub(in crate::backend::jail) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) enum Content {
    CopyOf(HostPath),
    /// For root alone.
    Private(Vec<u8>),
}

/// Makes the staging folder.
pub(in crate::backend::jail) fn staging(folder: &HostPath) -> Vec<Step> {
    vec![
        Step::new("make the folder in which piles are finished", with_paths("mkdir", ["-p"], &[folder])),
        Step::new("give it to root", with_paths("chown", ["root:wheel"], &[folder])),
        Step::new("let nobody else enter it", with_paths("chmod", ["700"], &[folder])),
    ]
}

/// Refuses a staging folder that somebody else could reach.
pub(in crate::backend::jail) fn check_staging(folder: &HostPath, stats: &Stats) -> Result<(), JailFault> {
    let wanted = "a folder of root's with mode 700";
    match stats.of(folder) {
        Some(stat) if stat.is_folder() && (stat.user, stat.group, stat.mode) == (0, 0, 0o700) => Ok(()),
        other => Err(unexpected(folder, other, wanted)),
    }
}

/// Refuses a folder on the host, or one above it, that anybody but root could exchange. Those that are not there yet
/// are made by root.
pub(in crate::backend::jail) fn check_folders(folder: &HostPath, stats: &Stats) -> Result<(), JailFault> {
    for part in folder.line() {
        let Some(stat) = stats.of(&part) else { continue };
        // In a folder with the sticky bit nobody can exchange what is root's.
        let is_others = stat.mode & 0o022 != 0 && (part == *folder || stat.mode & 0o1000 == 0);
        if !stat.is_folder() || stat.user != 0 || is_others {
            return Err(unexpected(&part, Some(stat), "a folder that nobody but root can write to"));
        }
    }
    Ok(())
}

impl Draft {
    /// Finishes the file and puts it in its place. That the place was taken meanwhile is seen by looking, not by this.
    pub(in crate::backend::jail) fn plan(&self) -> Vec<Step> {
        let Self { what, staged, place, content } = self;
        let remove = with_paths("rm", ["-f"], &[staged]);
        let mut steps = vec![Step::new(format!("remove what a killed run left of {what}"), remove.clone())];
        match content {
            Content::CopyOf(source) => {
                steps.push(
                    Step::new(format!("copy {what} where only root gets"), with_paths("cp", [], &[source, staged]))
                        .undo(remove),
                );
            }
            Content::Private(bytes) => {
                let write = Step::new(format!("write {what} where only root gets"), with_paths("tee", [], &[staged]));
                steps.push(write.input(bytes.clone()).undo(remove));
                steps.push(Step::new("give it to root", with_paths("chown", ["root:wheel"], &[staged])));
                steps.push(Step::new("let nobody else read it", with_paths("chmod", ["600"], &[staged])));
            }
        }
        let link = with_paths("ln", ["-h"], &[staged, place]);
        steps.push(Step::new(format!("give {what} its place, unless it is taken"), link).tolerated());
        steps
    }

    /// Whether a regular file is in the place now: this one, or that of whoever was first.
    pub(in crate::backend::jail) fn check(&self, stats: &Stats) -> Result<(), JailFault> {
        match (stats.of(&self.place), stats.of(&self.staged)) {
            (Some(place), Some(staged)) if place.is_file() => {
                if !place.is_same(staged) {
                    tracing::info!(file = %self.place, "somebody else was first; theirs stays");
                }
                Ok(())
            }
            (place, Some(_)) => Err(unexpected(&self.place, place, "a regular file")),
            (_, staged @ None) => Err(unexpected(&self.staged, staged, "the finished file")),
        }
    }

    /// Takes the second name away. To be done before the file becomes append-only: afterwards nobody can.
    pub(in crate::backend::jail) fn settle(&self) -> Step {
        Step::new(format!("forget the other name of {}", self.what), with_paths("rm", ["-f"], &[&self.staged]))
    }
}

/// A file of the host that is not what it has to be.
pub(in crate::backend::jail) fn unexpected(path: &HostPath, found: Option<&Stat>, wanted: &'static str) -> JailFault {
    let found = found.map_or_else(|| "not there".to_owned(), Stat::describe);
    JailFault::Unexpected { path: path.clone(), found, wanted }
}
